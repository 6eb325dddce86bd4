"""What is told of stages while they run: events on the stream, spans and metrics by OpenTelemetry."""
