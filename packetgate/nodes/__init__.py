"""The stages: one async function a file, packet in, changed sections out."""
