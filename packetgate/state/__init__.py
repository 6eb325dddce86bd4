"""The packet and its sections: only data. This folder imports no other folder of the package."""
