package trace

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WithSpans writes each call as a span of OpenTelemetry instead: a line of JSON
// that is a TracesData message of OTLP 1 (opentelemetry-proto, trace.proto; the
// encoding is opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"). The
// spans of one kernel are one trace, and have no parent.
func WithSpans() Option {
	return func(o *output) { o.trace, o.timed = randomID(16), true }
}

// randomID is an identifier of n bytes in hexadecimal.
func randomID(n int) string {
	id := make([]byte, n)
	_, _ = rand.Read(id) // which does not fail
	return hex.EncodeToString(id)
}

// Messages of OTLP with the fields that are used. 64-bit numbers are decimal
// strings, enumerations numbers.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope      `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      int64      `json:"startTimeUnixNano,string"`
		End        int64      `json:"endTimeUnixNano,string"`
		Attributes []keyValue `json:"attributes"`
		Status     otlpStatus `json:"status"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		String string `json:"stringValue,omitempty"`
		Int    int    `json:"intValue,string,omitempty"`
	}
)

// The numbers of SPAN_KIND_INTERNAL and STATUS_CODE_ERROR.
const (
	spanInternal = 1
	statusError  = 2
)

func text(key, value string) keyValue { return keyValue{key, anyValue{String: value}} }

// span is the line of a call as a span, from when it began until now. Its name
// is the call's, and the command's that it carries: "ioctl REG_MR".
func (l *line) span() []byte {
	end := l.begun.Add(time.Since(l.begun)) // by the monotonic clock
	call, rest, _ := strings.Cut(string(l.b[len(l.out.prefix):]), "(")
	args, result := rest[:l.args-len(l.out.prefix)-len(call)-1], string(l.b[l.result:])
	s := otlpSpan{
		TraceID: l.out.trace, SpanID: randomID(8), Name: call, Kind: spanInternal, Start: l.begun.UnixNano(), End: end.UnixNano(),
		Attributes: []keyValue{text("rdma.kernel", strings.Trim(l.out.prefix, "[] ")), text("rdma.arguments", args), text("rdma.result", result)},
	}
	if command := commandOf(call, args); command != "" {
		s.Name += " " + command
	}
	if why, failed := strings.CutPrefix(result, "-1 "); failed {
		s.Status = otlpStatus{why, statusError}
		name, _, _ := strings.Cut(why, " ")
		s.Attributes = append(s.Attributes, text("error.type", name))
	}
	out, _ := json.Marshal(tracesData{[]resourceSpans{{ // which has no value that JSON lacks
		resource{[]keyValue{text("service.name", filepath.Base(os.Args[0])), {"process.pid", anyValue{Int: os.Getpid()}}}},
		[]scopeSpans{{scope{"github.com/rdmashim/rdmashim/kshim/trace"}, []otlpSpan{s}}},
	}}})
	return append(out, '\n')
}

// commandOf is the name of the command that a write or an ioctl carries.
func commandOf(call, args string) string {
	if call != "write" && call != "ioctl" {
		return ""
	}
	_, cmd, _ := strings.Cut(args, ", ")
	words := strings.Fields(cmd)
	if len(words) > 1 && words[0] == "INVOKE_WRITE" {
		words = words[1:]
	}
	if len(words) == 0 || words[0][0] < 'A' || words[0][0] > 'Z' {
		return "" // bytes that are no command
	}
	return words[0]
}
