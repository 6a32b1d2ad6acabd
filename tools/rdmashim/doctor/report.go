package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Status is a check's outcome.
type Status string

const (
	Pass Status = "PASS" // as it should be
	Warn Status = "WARN" // works, but slower, or not for every peer
	Fail Status = "FAIL" // does not work
	Skip Status = "SKIP" // does not apply, or cannot be known: the detail says why
)

// Check is one check's result. Its JSON keys are stable.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"` // the observation, or the reason to skip the check
	Fix    string `json:"fix"`    // the command that mends it, or what to do; empty where nothing is wrong
}

// Report is Run's findings. Its JSON keys are stable.
type Report struct {
	Device string  `json:"device"` // as Open takes it; of RunWays the command
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"` // no check failed
}

func pass(format string, args ...any) Check {
	return Check{Status: Pass, Detail: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) Check {
	return Check{Status: Skip, Detail: fmt.Sprintf(format, args...)}
}

func warn(fix, format string, args ...any) Check {
	return Check{Status: Warn, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func fail(fix, format string, args ...any) Check {
	return Check{Status: Fail, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

// count is how many checks have a status.
func (r *Report) count(s Status) int {
	n := 0
	for _, c := range r.Checks {
		if c.Status == s {
			n++
		}
	}
	return n
}

// Summary says in one line how the checks ended.
func (r *Report) Summary() string {
	return fmt.Sprintf("%s: %d passed, %d warned, %d failed, %d skipped",
		r.Device, r.count(Pass), r.count(Warn), r.count(Fail), r.count(Skip))
}

// Text prints the report for people: a line a check, and a line more where
// something can be mended.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s  %-12s  %s\n", c.Status, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(&b, "%*s-> %s\n", 20, "", c.Fix)
		}
	}
	fmt.Fprintln(&b, r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}
