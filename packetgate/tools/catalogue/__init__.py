"""All tools of all servers under canonical names, as the user prefers them."""
