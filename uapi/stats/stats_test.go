package stats

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
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
	text, err := json.MarshalIndent(example(), "", "  ")
	require.NoError(t, err)
	golden(t, "device.json", append(text, '\n'))
	var back Device
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, example(), back)
}

// Prometheus' own parser reads the text.
func TestPrometheus(t *testing.T) {
	other := example()
	other.PID, other.Name, other.QueuePairs = 4712, "soft1", nil
	rxe := Device{Name: "rxe0", Kind: "host", Ports: []Port{{Port: 1, State: "DOWN", Counters: Counters{"rcvd_seq_err": 3}}}}
	var b bytes.Buffer
	require.NoError(t, WritePrometheus(&b, []Device{example(), other, rxe, rxe}))
	golden(t, "metrics.txt", b.Bytes())

	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&b)
	require.NoError(t, err)
	find := func(name string, labels map[string]string) float64 {
		for _, m := range families[name].GetMetric() {
			got := map[string]string{}
			for _, l := range m.GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
			matches := true
			for k, v := range labels {
				matches = matches && got[k] == v
			}
			if matches {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		t.Fatalf("no sample of %s with %v", name, labels)
		return 0
	}
	require.EqualValues(t, 12, find("rdmashim_port_sent_pkts_total", map[string]string{"device": "soft0", "process": `de"m\o`}))
	require.EqualValues(t, 8, find("rdmashim_port_drops_total", map[string]string{"cause": "icrc", "pid": "4712"}))
	require.EqualValues(t, 3, find("rdmashim_port_naks_received_total", map[string]string{"device": "rxe0", "nak": "sequence"}))
	require.EqualValues(t, 1, find("rdmashim_port_naks_received_total", map[string]string{"device": "soft0", "nak": "sequence"}))
	require.EqualValues(t, 25e-6, find("rdmashim_qp_rtt_seconds", map[string]string{"lqpn": "17"}))
	require.EqualValues(t, 1, find("rdmashim_qp_info", map[string]string{"lqpn": "17", "peer": "127.0.0.2:4791", "rqpn": "18"}))
	require.EqualValues(t, 1, find("rdmashim_port_rx_write_requests_total", nil))
	require.Len(t, families["rdmashim_port_drops_total"].GetMetric(), 4, "drop_send is the sum of others")
	require.Len(t, families["rdmashim_port_info"].GetMetric(), 3, "a device that was read twice is shown once")
}
