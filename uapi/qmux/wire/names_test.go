package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

func TestParametersString(t *testing.T) {
	p := wire.Parameters{MaxIdleTimeout: 30000, MaxStreamsUni: 7, MaxRecordSize: wire.DefaultMaxRecord}
	require.Equal(t, "max_idle_timeout=30000 initial_max_streams_uni=7", p.String())
	p.MaxRecordSize, p.ResetStreamAt = 65536, true
	require.Equal(t, "max_idle_timeout=30000 initial_max_streams_uni=7 max_record_size=65536 reset_stream_at", p.String())
	for name := range p.Numbers { // and ends where its caller does
		require.Equal(t, "max_idle_timeout", name)
		break
	}
}

func TestFrameFields(t *testing.T) {
	f := wire.Frame{Type: wire.StreamType(true, true, false), Stream: 4, Offset: 5, Data: []byte("hi")}
	got := map[string]uint64{}
	for name, value := range f.Fields {
		got[name] = value
	}
	require.Equal(t, map[string]uint64{"id": 4, "offset": 5, "len": 2}, got)
	for range f.Fields {
		break
	}
	f.Type = 0x99
	for range f.Fields {
		t.Fatal("an unknown type has fields")
	}
}

// TestOpens tells every prefix of what QMux and other protocols begin with.
func TestOpens(t *testing.T) {
	for _, c := range []struct {
		first string
		ok    bool
		sure  int // bytes after which it is known
	}{
		{"\x09\xff\x51\x53\x30\x0d\x0a\x0d\x0a\x00", true, 9},
		{"\x09\xff\x51\x4d\x58\x0d\x0a\x0d\x0a\x00", true, 9},
		{"\xc0\x00\x00\x00\x00\x00\x00\x09\xff\x51\x53\x30\x0d\x0a\x0d\x0a\x00", true, 16},
		{"\x09\xff\x51\x53\x30\x0d\x0a\x0d\x0b\x00", false, 9},
		{"GET / HTTP/1.1\r\n", false, 3},
		{"HTTP/1.1 400 Bad Request", false, 3},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", false, 2},
		{"\x00\x00", false, 2},
	} {
		for n := range len(c.first) + 1 {
			ok, sure := wire.Opens([]byte(c.first[:n]))
			require.Equal(t, n >= c.sure, sure, "%d bytes of %q", n, c.first)
			require.Equal(t, c.ok || n < c.sure, ok, "%d bytes of %q", n, c.first)
		}
	}
}
