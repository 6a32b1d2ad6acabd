//go:build plant

package engine

import "github.com/rdmashim/rdmashim/rnic/mem"

var planted = plantNone

// plants are the mistakes by name. A stale key is mem's.
var plants = []struct {
	name string
	n    int
}{
	{"psn-check-skipped", plantPSNCheck},
	{"completion-doubled", plantDouble},
	{"ack-lost-for-good", plantAckLost},
	{"stale-key-accepted", plantNone},
	{"length-off-by-one", plantLength},
	{"former-life-accepted", plantResync},        // the first packet after a connect decides the PSN
	{"receive-survives-reset", plantResetHolds},  // a half message's receive belongs to the next life
	{"rnr-timer-ignored", plantRNR},              // an RNR NAK is answered at once
	{"silent-peer-believed", plantForEver},       // each retransmission starts the retry time anew
	{"silence-after-two-timeouts", plantSilence}, // nothing is sent any more, also when the network heals
	{"window-never-shrinks", plantWindow},
	{"invalidate-ignored", plantInvalidate},
	{"repeated-read-misplaced", plantReadRepeat}, // a READ repeated from the middle brings its beginning
	{"atomic-done-again", plantAtomicAgain},      // a duplicate is executed
	{"drain-ignored", plantDrain},                // requests are begun in SQD
	{"fence-ignored", plantFence},
}

// Plants are the names that Plant takes.
func Plants() []string {
	var names []string
	for _, p := range plants {
		names = append(names, p.name)
	}
	return names
}

// Plant makes this process's engines make a mistake, by its name; "" ends it. It
// reports whether it knows the name. It exists in builds with the tag "plant" only.
func Plant(name string) bool {
	planted = plantNone
	mem.PlantStaleKey(name == "stale-key-accepted")
	for _, p := range plants {
		if p.name == name {
			planted = p.n
			return true
		}
	}
	return name == ""
}
