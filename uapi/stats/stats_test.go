package stats

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -rewrite")
	require.Equal(t, string(want), string(got))
}

func TestSummarize(t *testing.T) {
	c := example().Ports[0].Counters
	require.Equal(t, Summary{
		SentPackets: 12, SentBytes: 40960, ReceivedPackets: 7, ReceivedBytes: 64, Messages: 4,
		Retransmitted: 2, Timeouts: 1, NAKsSent: 4, NAKsReceived: 2, RNRSent: 5, RNRReceived: 6, Drops: 17,
	}, c.Summarize())
	require.Equal(t, map[string]uint64{"icrc": 8, "send_unreach": 9}, c.Drops())

	rxe := Counters{"sent_pkts": 5, "rcvd_seq_err": 3, "completer_retry_err": 2}
	require.Equal(t, Summary{SentPackets: 5, NAKsReceived: 3, Retransmitted: 2}, rxe.Summarize())
	require.True(t, rxe.Known("sent_bytes", "sent_pkts"))
	require.False(t, rxe.Known("sent_bytes"))
}

func TestSince(t *testing.T) {
	require.Equal(t, Counters{"a": 3, "b": 2, "new": 1}, Counters{"a": 5, "b": 2, "new": 1}.Since(Counters{"a": 2, "b": 7, "gone": 1}),
		"a counter that went down is of another device")
	require.Nil(t, Counters(nil).Since(Counters{"a": 1}))
}

func TestJSON(t *testing.T) {
	text := must.Get(json.MarshalIndent(example(), "", "  "))(t)
	golden(t, "device.json", append(text, '\n'))
	var back Device
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, example(), back)
}

// TestWritePrometheus: the golden file is what Prometheus' own parser reads in
// tests/grpc.
func TestWritePrometheus(t *testing.T) {
	other := example()
	other.PID, other.Name, other.QueuePairs = 4712, "soft1", nil
	rxe := Device{Name: "rxe0", Kind: "host", Ports: []Port{{Port: 1, State: "DOWN", Counters: Counters{"rcvd_seq_err": 3}}}}
	var b bytes.Buffer
	require.NoError(t, WritePrometheus(&b, []Device{example(), other, rxe, rxe}))
	golden(t, "metrics.txt", b.Bytes())
}

func TestCountersString(t *testing.T) {
	require.Equal(t, "map[rcvd_pkts:2 sent_pkts:7]", Counters{"sent_pkts": 7, "dropped": 0, "rcvd_pkts": 2}.String())
	require.Equal(t, "map[]", Counters(nil).String())
}
