package cm

// Mistakes that builds with the tag "plant" can make, to show that tests notice
// them; without the tag the checks compile away.
const (
	plantNone = iota
	plantReject
	plantRTU
	plantStale
	plantLinger
	plantRepeat
)
