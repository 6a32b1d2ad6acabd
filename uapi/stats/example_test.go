package stats_test

import (
	"fmt"
	"net/http"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// A program that serves its devices' counters to Prometheus.
func ExampleWritePrometheus() {
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_ = stats.WritePrometheus(w, uapi.AllStats())
	})
}

func ExampleCounters_Summarize() {
	c := stats.Counters{"sent_pkts": 40, "retransmitted_pkts": 2, "drop_icrc": 1, "drop_qpn": 3}
	s := c.Summarize()
	fmt.Println(s.SentPackets, s.Retransmitted, s.Drops, c.Drops())
	// Output: 40 2 4 map[icrc:1 qpn:3]
}
