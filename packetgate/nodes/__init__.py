"""The stages. Each file has one async function that takes the packet and returns the changed sections."""
