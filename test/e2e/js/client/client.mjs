// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Sends traces, metrics and logs with the OpenTelemetry SDK of JavaScript, as OTLP/JSON: client.mjs URL COMPRESSION. At its end it prints
// the ids of its spans, and the attributes of the span "job", as one JSON object.
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { SeverityNumber } from '@opentelemetry/api-logs';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';

const [url, compression] = process.argv.slice(2);
const exporter = (Exporter, signal) => new Exporter({ url: `${url}/v1/${signal}`, compression, timeoutMillis: 60000 });
const resource = resourceFromAttributes({ 'service.name': 'launcher', 'nemo.run.id': 'js', 'nv.dl.rank': 3, 'host.name': 'node-a' });

const values = {
  text: 'ü \u0000 \u2028 \u{1F600} "\\',
  empty: '',
  yes: true,
  no: false,
  zero: 0,
  largest: Number.MAX_SAFE_INTEGER,
  smallest: Number.MIN_SAFE_INTEGER,
  beyond: 2 ** 62, // Beyond what a double counts exactly, in digits that JSON has.
  third: 1 / 3,
  tiny: 5e-324,
  texts: ['a', '', 'b'],
  numbers: [1, -2, 0.5],
  none: [],
};

const tracers = new TracerProvider({ resource, spanProcessors: [new BatchSpanProcessor({ exporter: exporter(OTLPTraceExporter, 'traces') })] });
const tracer = tracers.getTracer('js', '1.2');
const spans = [];
const root = tracer.startSpan('job', { kind: SpanKind.SERVER, attributes: values }, ROOT_CONTEXT);
const inRoot = trace.setSpan(ROOT_CONTEXT, root);
for (let i = 0; i < 400; i++) {
  const step = tracer.startSpan(`step ${i}`, { kind: SpanKind.CLIENT, attributes: { i }, links: [{ context: root.spanContext(), attributes: { why: 'parent' } }] }, inRoot);
  step.addEvent('checkpoint', { path: `/ckpt/${i}`, bytes: i * 2 ** 40 });
  if (i % 100 === 7) {
    step.recordException(new Error(`loss is NaN at ${i}`));
    step.setStatus({ code: SpanStatusCode.ERROR, message: 'diverged' });
  }
  step.end();
  spans.push(step.spanContext().spanId);
}
root.setStatus({ code: SpanStatusCode.OK });
root.end();
spans.push(root.spanContext().spanId);

const meters = new MeterProvider({
  resource,
  views: [{ instrumentName: 'exponential', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
  readers: [new PeriodicExportingMetricReader({ exporter: exporter(OTLPMetricExporter, 'metrics'), exportIntervalMillis: 3600000 })],
});
const meter = meters.getMeter('js');
for (let i = 0; i < 50; i++) {
  meter.createCounter('tokens', { unit: '{token}', description: 'Tokens.' }).add(2 ** 40, { expert: i });
  meter.createHistogram('duration', { unit: 'ms' }).record(i * 1.5, { even: i % 2 === 0 });
  meter.createHistogram('exponential').record(i ** 3);
}
meter.createUpDownCounter('waiting').add(-2.5);
meter.createGauge('loss').record(1 / 3);

const loggers = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter: exporter(OTLPLogExporter, 'logs') })] });
const logger = loggers.getLogger('js');
const bytes = Uint8Array.from([0, 255, 62, 63]);
logger.emit({ severityNumber: SeverityNumber.WARN, severityText: 'WARN', eventName: 'launched', context: inRoot,
  body: { ...values, bytes, nested: { list: [{ k: 1 }, [], {}, null, bytes] } }, attributes: { ...values, bytes, map: { a: { b: [1] } } } });
logger.emit({ body: 'plain' });
logger.emit({ body: 42 });

await Promise.all([tracers, meters, loggers].map((provider) => provider.shutdown()));
console.log(JSON.stringify({ spans, values }));
