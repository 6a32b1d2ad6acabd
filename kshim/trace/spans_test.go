package trace

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// otlp are the fields of OTLP's messages by their names in JSON, and what is in
// each: a message, a list of one, or a value. They are those of trace.proto,
// common.proto and resource.proto of opentelemetry-proto 1.
var otlp = map[string]map[string]string{
	"TracesData":           {"resourceSpans": "[ResourceSpans"},
	"ResourceSpans":        {"resource": "Resource", "scopeSpans": "[ScopeSpans", "schemaUrl": "string"},
	"Resource":             {"attributes": "[KeyValue", "droppedAttributesCount": "number"},
	"ScopeSpans":           {"scope": "InstrumentationScope", "spans": "[Span", "schemaUrl": "string"},
	"InstrumentationScope": {"name": "string", "version": "string", "attributes": "[KeyValue", "droppedAttributesCount": "number"},
	"Span": {
		"traceId": "id16", "spanId": "id8", "traceState": "string", "parentSpanId": "id8", "flags": "number", "name": "string", "kind": "number",
		"startTimeUnixNano": "int64", "endTimeUnixNano": "int64", "attributes": "[KeyValue", "droppedAttributesCount": "number",
		"events": "[Event", "droppedEventsCount": "number", "links": "[Link", "droppedLinksCount": "number", "status": "Status",
	},
	"Status":   {"message": "string", "code": "number"},
	"KeyValue": {"key": "string", "value": "AnyValue"},
	"AnyValue": {"stringValue": "string", "boolValue": "bool", "intValue": "int64", "doubleValue": "number", "bytesValue": "string"},
}

// holds checks that a value is what a field of OTLP has.
func holds(t *testing.T, kind string, v any) {
	t.Helper()
	if kind[0] == '[' {
		for _, each := range v.([]any) {
			holds(t, kind[1:], each)
		}
		return
	}
	switch kind {
	case "string":
		require.IsType(t, "", v)
	case "number":
		require.IsType(t, 0.0, v)
	case "int64":
		must.Get(strconv.ParseInt(v.(string), 10, 64))(t)
	case "id8", "id16":
		id := must.Get(hex.DecodeString(v.(string)))(t)
		require.Equal(t, kind, "id"+strconv.Itoa(len(id)))
		require.False(t, allZero(id))
	default:
		require.Contains(t, otlp, kind)
		for name, field := range v.(map[string]any) {
			require.Contains(t, otlp[kind], name, kind)
			holds(t, otlp[kind][name], field)
		}
	}
}

// spanOf takes a line's span out of its messages.
func spanOf(t *testing.T, line string) otlpSpan {
	t.Helper()
	var any any
	require.NoError(t, json.Unmarshal([]byte(line), &any), line)
	holds(t, "TracesData", any)
	var d tracesData
	require.NoError(t, json.Unmarshal([]byte(line), &d))
	require.Len(t, d.ResourceSpans, 1)
	require.Len(t, d.ResourceSpans[0].ScopeSpans, 1)
	require.Len(t, d.ResourceSpans[0].ScopeSpans[0].Spans, 1)
	require.Equal(t, "service.name", d.ResourceSpans[0].Resource.Attributes[0].Key)
	return d.ResourceSpans[0].ScopeSpans[0].Spans[0]
}

// Each call is a span in the encoding of OTLP, with what a line would show.
func TestSpans(t *testing.T) {
	began := time.Now().UnixNano()
	k, f, out := traced(t, WithSpans(), WithName("7 sim0"))
	must.Get(f.Write(writeCmd(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: 7}, 4, 0)))(t)
	s := spanOf(t, out.take())
	require.Equal(t, "write DEALLOC_PD", s.Name)
	require.Equal(t, spanInternal, s.Kind)
	require.Zero(t, s.Status)
	require.LessOrEqual(t, began, s.Start)
	require.LessOrEqual(t, s.Start, s.End)
	require.Equal(t, []keyValue{text("rdma.kernel", "7 sim0"), text("rdma.arguments", "3, DEALLOC_PD {pd_handle=7}"), text("rdma.result", "12")}, s.Attributes)

	first := s
	invoke := ioctlArg(0, 0, abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Len: 8, Data: uint64(abi.CmdDeallocPD)}, abi.IoctlAttr{AttrID: abi.AttrCoreIn, Len: 4, Data: 6})
	for _, x := range []struct {
		call func()
		name string
	}{
		{func() { _ = f.Ioctl(invoke) }, "ioctl DEALLOC_PD"},
		{func() { _ = f.Ioctl(ioctlArg(abi.ObjectPD, 0, abi.IoctlAttr{Data: 1})) }, "ioctl PD_DESTROY"},
		{func() { _, _ = f.Write([]byte{1, 2, 3}) }, "write"},
		{func() { _, _ = f.Write(nil) }, "write"},
		{func() { _ = f.Ioctl(ioctlArg(0, 0)) }, "ioctl"},
		{func() { _, _ = f.Mmap(0x4000, 8192) }, "mmap"},
		{func() { _ = f.Close() }, "close"},
	} {
		x.call()
		s = spanOf(t, out.take())
		require.Equal(t, x.name, s.Name)
		require.Equal(t, first.TraceID, s.TraceID)
		require.NotEqual(t, first.SpanID, s.SpanID)
	}

	k.err = syscall.ENOENT
	_ = f.Ioctl(invoke)
	s = spanOf(t, out.take())
	require.Equal(t, statusError, s.Status.Code)
	require.Equal(t, "ENOENT (No such file or directory)", s.Status.Message)
	require.Equal(t, text("error.type", "ENOENT"), s.Attributes[len(s.Attributes)-1])
	must.Fail(New(k, out, WithSpans()).Open("/dev/infiniband/\"uverbs9\n"))(t, syscall.ENOENT)
	s = spanOf(t, out.take())
	require.Equal(t, "open", s.Name)
	require.NotEqual(t, first.TraceID, s.TraceID, "another kernel's")
}

// The environment asks for spans by the file's name.
func TestEnvSpans(t *testing.T) {
	path := t.TempDir() + "/spans"
	t.Setenv(EnvTrace, "otlp:"+path)
	t.Setenv(EnvTime, "1") // as spans have it without
	k, done, err := Env(&fakeKernel{}, "sim0")
	require.NoError(t, err)
	must.Get(k.Open("/dev/infiniband/uverbs0"))(t)
	done()
	content := must.Get(os.ReadFile(path))(t)
	require.Equal(t, "open", spanOf(t, string(content)).Name)
	t.Setenv(EnvTrace, "otlp:")
	_, _, err = Env(&fakeKernel{}, "sim0")
	require.ErrorIs(t, err, syscall.ENOENT)
}
