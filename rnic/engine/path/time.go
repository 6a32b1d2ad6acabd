package path

// Time is nanoseconds on a monotonic clock of the caller's choice.
type Time int64

// Duration is nanoseconds.
type Duration int64

// Units of Duration.
const (
	Microsecond Duration = 1000
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)
