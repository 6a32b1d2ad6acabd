package rdmanet_test

import (
	"fmt"
	"testing"
)

// faults are those of each direction.
const faults = "loss=5%&reorder=10%&dup=1%&corrupt=0.1%"

// TestUnderFaults repeats tests of streams, and of programs on them, on a
// network that loses, reorders, doubles and damages packets both ways. HTTP/2
// holds a mutex while it writes, which virtual time cannot wait for.
func TestUnderFaults(t *testing.T) {
	if realDevice != "" {
		t.Skip("the faults are those of a soft device; run it without RDMANET_TEST_DEVICE")
	}
	defer func() { network, realDevice = "", "" }()
	for seed := range 3 {
		network = fmt.Sprintf("%s&seed=%d", faults, seed+1)
		for name, test := range map[string]func(*testing.T){
			"half-close":  TestHalfClose,
			"deadlines":   TestRival11Deadlines,
			"copies":      TestCopies,
			"close":       TestCloseCarriesWhatWasWritten,
			"linger 0":    TestLingerZero,
			"unread data": TestUnreadDataResets,
			"dialers":     TestRival13ManyDialers,
			"stalled":     TestRival15StalledReader,
			"keep-alive":  TestKeepAlive,
			"TLS":         TestTLS,
			"RPC":         TestRPC,
		} {
			t.Run(fmt.Sprintf("%s/seed %d", name, seed+1), test)
		}
	}
	realDevice = "soft?" + faults
	t.Run("HTTP", TestHTTP)
}
