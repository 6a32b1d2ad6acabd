package stats

import "fmt"

// SilentError says that a process did not begin to answer in time. The JSON
// keys are stable.
type SilentError struct {
	PID     int    `json:"pid"`
	Process string `json:"process,omitempty"` // its program, where /proc tells it
	Stopped bool   `json:"stopped"`           // by a signal or a debugger, where /proc tells it
}

func (e *SilentError) Error() string {
	name := fmt.Sprintf("process %d", e.PID)
	if e.Process != "" {
		name += " (" + e.Process + ")"
	}
	why := ""
	if e.Stopped {
		why = fmt.Sprintf(": it is stopped; kill -CONT %d lets it go on", e.PID)
	}
	return name + " does not answer within 200ms" + why
}

// Timeout implements net.Error's.
func (e *SilentError) Timeout() bool { return true }
