"""Telemetry in memory, recorded by the real OpenTelemetry SDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SCOPE = "packetgate"


class Faulty(SpanProcessor):
    """A user's SDK component that fails on demand."""

    broken = False

    def on_end(self, span: ReadableSpan) -> None:
        if self.broken:
            raise OSError("the collector is full")


@dataclass
class Telemetry:
    """Spans and measures since the last `clear`."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    faulty: Faulty

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans in the order they ended, without those of the libraries below."""
        everyones = self.everyones
        return [span for span in everyones if span.instrumentation_scope and span.instrumentation_scope.name == SCOPE]

    @property
    def everyones(self) -> tuple[ReadableSpan, ...]:
        """The spans in the order they ended, those of the libraries below too."""
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans with a name."""
        return [span for span in self.spans if span.name == name]

    def stage(self, name: str) -> ReadableSpan:
        """Return the one span of a stage."""
        (span,) = self.named(f"packetgate {name}")
        return span

    def measured(self) -> dict[str, list[Any]]:
        """Return the points of each metric since the last call."""
        data = self.reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if scope.scope.name == SCOPE
        }

    def clear(self) -> None:
        """Delete all records."""
        self.faulty.broken = False
        self.exporter.clear()
        self.reader.get_metrics_data()


@cache
def recording() -> Telemetry:
    """Configure the SDK for this process, once, as a user would."""
    delta = AggregationTemporality.DELTA
    telemetry = Telemetry(
        InMemorySpanExporter(),
        InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta}),
        Faulty(),
    )
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(telemetry.exporter))
    tracers.add_span_processor(telemetry.faulty)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([telemetry.reader, PrometheusMetricReader()]))
    return telemetry


def told(span: ReadableSpan) -> Mapping[str, Any]:
    """Return a span's attributes."""
    return span.attributes or {}
