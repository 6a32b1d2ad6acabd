//go:build !unix

package perf

import "time"

// CPUTime is the processor time that the process has used, 0 where that is not
// known.
func CPUTime() time.Duration { return 0 }
