package grpctest

import (
	"os"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// TestPrometheus: Prometheus' own parser reads the text that package stats
// writes, which its golden file has.
func TestPrometheus(t *testing.T) {
	f, err := os.Open("../../uapi/stats/testdata/metrics.txt")
	require.NoError(t, err)
	defer f.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(f)
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
