// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.KeyValue;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.logs.Severity;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Context;
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporter;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.View;
import io.opentelemetry.sdk.metrics.export.PeriodicMetricReader;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Sends traces, metrics and logs with the OpenTelemetry SDK of Java, as protobuf over HTTP: Client.java URL COMPRESSION. At its end it
 * prints the ids of its spans, and the attributes of the span "job", as one JSON object.
 */
public class Client {
  public static void main(String[] args) {
    String url = args[0], compression = args[1];
    Resource resource = Resource.create(Attributes.builder().put("service.name", "launcher").put("nemo.run.id", "java")
        .put("nv.dl.rank", 3).put("host.name", "node-a").build(), "https://example.com/schema");
    Attributes values = Attributes.builder()
        .put("text", "ü \u0000 \uD83D\uDE00 \"").put("empty", "").put("yes", true).put("no", false)
        .put("largest", Long.MAX_VALUE).put("smallest", Long.MIN_VALUE).put("zero", 0L)
        .put("third", 1.0 / 3).put("largest double", Double.MAX_VALUE)
        .put("texts", "a", "", "b").put("numbers", 1L, -2L, Long.MAX_VALUE).put("doubles", 0.5, 1.0).put("flags", true, false)
        .build();
    List<String> ids = new ArrayList<>();

    SdkTracerProvider tracers = SdkTracerProvider.builder().setResource(resource).addSpanProcessor(BatchSpanProcessor.builder(
        OtlpHttpSpanExporter.builder().setEndpoint(url + "/v1/traces").setCompression(compression).setTimeout(60, TimeUnit.SECONDS).build()).build()).build();
    var tracer = tracers.get("java", "1.2");
    var job = tracer.spanBuilder("job").setNoParent().setSpanKind(SpanKind.SERVER).setAllAttributes(values).startSpan();
    Context inJob = Context.root().with(job);
    for (int i = 0; i < 400; i++) {
      var step = tracer.spanBuilder("step " + i).setParent(inJob).setSpanKind(SpanKind.CONSUMER).setAttribute("i", i)
          .addLink(job.getSpanContext(), Attributes.of(AttributeKey.stringKey("why"), "parent")).startSpan();
      step.addEvent("checkpoint", Attributes.of(AttributeKey.longKey("bytes"), i * (1L << 40)), 1_800_000_000_000_000_001L + i, TimeUnit.NANOSECONDS);
      if (i % 100 == 7) {
        step.recordException(new IllegalStateException("loss is NaN at " + i));
        step.setAttribute("loss", Double.NaN);
        step.setStatus(StatusCode.ERROR, "diverged");
      }
      step.end();
      ids.add(step.getSpanContext().getSpanId());
    }
    job.setStatus(StatusCode.OK);
    job.end();
    ids.add(job.getSpanContext().getSpanId());

    SdkMeterProvider meters = SdkMeterProvider.builder().setResource(resource)
        .registerView(InstrumentSelector.builder().setName("exponential").build(),
            View.builder().setAggregation(Aggregation.base2ExponentialBucketHistogram()).build())
        .registerMetricReader(PeriodicMetricReader.builder(OtlpHttpMetricExporter.builder().setEndpoint(url + "/v1/metrics")
            .setCompression(compression).setTimeout(60, TimeUnit.SECONDS).build()).setInterval(1, TimeUnit.HOURS).build()).build();
    var meter = meters.get("java");
    var tokens = meter.counterBuilder("tokens").setUnit("{token}").setDescription("Tokens.").build();
    var duration = meter.histogramBuilder("duration").setUnit("ms").build();
    var exponential = meter.histogramBuilder("exponential").build();
    try (var scope = inJob.makeCurrent()) { // Exemplars are of a sampled span.
      for (int i = 0; i < 50; i++) {
        tokens.add(Long.MAX_VALUE - i, Attributes.of(AttributeKey.longKey("expert"), (long) i));
        duration.record(i * 1.5);
        exponential.record(i * i * i);
      }
    }
    meter.gaugeBuilder("loss").build().set(1.0 / 3);

    SdkLoggerProvider loggers = SdkLoggerProvider.builder().setResource(resource).addLogRecordProcessor(BatchLogRecordProcessor.builder(
        OtlpHttpLogRecordExporter.builder().setEndpoint(url + "/v1/logs").setCompression(compression).setTimeout(60, TimeUnit.SECONDS).build()).build()).build();
    var logger = loggers.get("java");
    Value<?> bytes = Value.of(new byte[] {0, (byte) 255, 62, 63});
    logger.logRecordBuilder().setContext(inJob).setSeverity(Severity.WARN).setSeverityText("WARN").setEventName("launched").setAllAttributes(values)
        .setBody(Value.of(KeyValue.of("bytes", bytes), KeyValue.of("list", Value.of(Value.of(1), Value.of(true), Value.of(List.of()))),
            KeyValue.of("map", Value.of(KeyValue.of("k", Value.of(Long.MIN_VALUE)))))).emit();
    logger.logRecordBuilder().setBody("plain").emit();

    for (var closed : List.of(tracers.shutdown(), meters.shutdown(), loggers.shutdown())) {
      if (!closed.join(2, TimeUnit.MINUTES).isSuccess()) {
        throw new IllegalStateException("not everything was sent");
      }
    }
    List<String> pairs = new ArrayList<>();
    values.forEach((key, value) -> pairs.add(json(key.getKey()) + ":" + json(value)));
    System.out.println("{\"spans\":" + json(ids) + ",\"values\":{" + String.join(",", pairs) + "}}");
  }

  static String json(Object value) {
    if (value instanceof List<?> list) {
      return list.stream().map(Client::json).toList().toString().replace(", ", ",");
    }
    return value instanceof String text ? "\"" + text.replace("\"", "\\\"").replace("\u0000", "\\u0000") + "\"" : value.toString();
  }
}
