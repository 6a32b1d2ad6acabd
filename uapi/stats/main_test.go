package stats

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/tests/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// example is a reading with everything in it.
func example() Device {
	return Device{
		Name: "soft0", Device: "soft:127.0.0.1", Kind: "soft", NetDev: "lo", Address: netip.MustParseAddrPort("127.0.0.1:4791"),
		PID: 4711, Process: `de"m\o`, Time: time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC),
		Ports: []Port{{Port: 1, State: "ACTIVE", MTU: 4096, Counters: Counters{
			"sent_pkts": 12, "sent_bytes": 40960, "rcvd_pkts": 7, "rcvd_bytes": 64, "rdma_writes": 3, "rdma_recvs": 1,
			"retransmitted_pkts": 2, "completer_retry_err": 1, "retransmit_timeouts": 1, "nak_seq_rcvd": 1, "rcvd_seq_err": 1,
			"nak_access_rcvd": 1, "nak_op_sent": 4, "send_rnr_err": 5, "rcvd_rnr_err": 6,
			"drop_icrc": 8, "drop_send": 9, "drop_send_unreach": 9, "cm_timeouts": 3, "cm_drop_state": 2, "fault_loss": 2, "rx_write_requests": 1,
		}}},
		QueuePairs: []QueuePair{
			{
				QPN: 17, Type: "RC", State: "RTS", RemoteQPN: 18, Peer: netip.MustParseAddrPort("127.0.0.2:4791"), MTU: 1024, SQPSN: 5, RQPSN: 6,
				Requester: &Requester{
					Outstanding: 1, InFlight: 4352, Window: 65536,
					PathWindow: 98304, RTT: 25 * time.Microsecond, RTTVariance: 5 * time.Microsecond, BaseRTT: 20 * time.Microsecond, RTO: 4 * time.Millisecond, MTU: 8936,
				},
				Counters: Counters{"sent_pkts": 12, "rdma_writes": 3},
			},
			{QPN: 19, Type: "UD", State: "INIT", PID: 99, Process: "kern"},
		},
	}
}
