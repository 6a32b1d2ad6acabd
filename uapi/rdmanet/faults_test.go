package rdmanet_test

import (
	"fmt"
	"testing"
)

// faults are those of a bad network, in both directions.
const faults = "loss=5%&reorder=10%&dup=1%&corrupt=0.1%"

// TestUnderFaults repeats tests of streams, and of programs on them, on a
// network that loses, reorders, doubles and damages packets.
func TestUnderFaults(t *testing.T) {
	if realDevice != "" {
		t.Skip("the faults are those of a network in memory; run it without RDMANET_TEST_DEVICE")
	}
	defer func() { network = "" }()
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		network = fmt.Sprintf("%s&seed=%d", faults, seed+1)
		for _, c := range []struct {
			name string
			test func(*testing.T)
		}{
			{"both ways", TestRival04BothWriteThroughSmallRings},
			{"close read", TestCloseRead},
			{"deadlines", TestRival11Deadlines},
			{"copies", TestCopies},
			{"close", TestCloseCarriesWhatWasWritten},
			{"close during calls", TestRival08CloseDuringCalls},
			{"leave nothing", TestRival14ConnectionsLeaveNothing},
			{"HTTP", TestHTTP},
			{"hijack", TestHijack},
			{"TLS", TestTLS},
			{"close with a full ring", TestRival09CloseIsBounded},
			{"stalled reader", TestRival15StalledReader},
		} {
			t.Run(fmt.Sprintf("%s/seed %d", c.name, seed+1), c.test)
		}
	}
}
