"""The packet and its sections: data only, importing no other room."""
