"""Reading calls and JSON in what a model wrote."""
