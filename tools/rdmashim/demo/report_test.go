package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhyAgain: packets that were sent again without a fault are explained.
func TestWhyAgain(t *testing.T) {
	for _, c := range []struct {
		client, server map[string]uint64
		want           string
	}{
		{map[string]uint64{"sent_pkts": 9}, nil, ""},
		{map[string]uint64{"retransmitted_pkts": 9, "fault_loss": 9}, nil, ""},
		{map[string]uint64{"retransmitted_pkts": 9}, map[string]uint64{"retransmitted_pkts": 1}, "10 packets were sent again, none was lost: a process"},
		{map[string]uint64{"retransmitted_pkts": 9}, map[string]uint64{"drop_rcvbuf": 4}, "9 packets were sent again, since 4 were dropped"},
	} {
		r := Report{Client: c.client, Server: c.server}
		if c.want == "" {
			require.Empty(t, r.whyAgain())
		}
		require.Contains(t, r.whyAgain(), c.want)
	}
}
