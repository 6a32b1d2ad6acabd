package engine

// Mistakes that builds with the tag "plant" can make, to show that tests notice
// them; without the tag the checks compile away. A stale key is mem's mistake.
const (
	plantNone = iota
	plantPSNCheck
	plantDouble
	plantAckLost
	plantLength
	plantResync
	plantResetHolds
	plantRNR
	plantForEver
	plantSilence
	plantWindow
	plantInvalidate
	plantReadRepeat
	plantAtomicAgain
	plantDrain
	plantFence
)
