package vm

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A complaint of the kernel fails a run. Source of the words: panic.c, bug.c,
// lib/bug.c, arch/x86/kernel/dumpstack.c, arch/x86/mm/fault.c of the kernel.
var complaint = regexp.MustCompile(`WARNING:|BUG:|Oops\b|kernel BUG at|general protection fault|Kernel panic|Unable to handle kernel|KASAN:|UBSAN:|refcount_t:`)

// A slow emulated processor causes stalls by itself: a stall is reported, and
// fails nothing.
var stall = regexp.MustCompile(`soft lockup|hard LOCKUP|self-detected stall|detected stalls|rcu_\w+ kthread starved|rcu: .*stall|workqueue lockup|blocked for more than|clocksource: .*(unstable|skew|watchdog)|hrtimer: interrupt took`)

// advice lists the kernel's warnings that are only advice.
var advice = regexp.MustCompile(`^(Spectre V\d|MDS|MMIO Stale Data|TAA|RETBleed)\b.*WARNING:|WARNING: Unprivileged eBPF`)

const (
	complaintLines = 30 // kept of each complaint
	maxComplaints  = 5
)

// logJudge reads a kernel's log line by line and keeps the lines that matter.
// The same line may come twice, over the console and over the port.
type logJudge struct {
	mu         sync.Mutex
	out        io.Writer // receives all lines; guarded by mu
	complaints []string  // guarded by mu
	stalls     []string  // guarded by mu
	count      int       // of complaints; guarded by mu
	following  int       // lines to keep after a complaint; guarded by mu
	last       string    // guarded by mu
}

var stamp = regexp.MustCompile(`^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?`)

// line takes one line without its end.
func (j *logJudge) line(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	io.WriteString(j.out, text+"\n")
	if strings.TrimSpace(text) != "" {
		j.last = text
	}
	message := stamp.ReplaceAllString(text, "")
	switch {
	case message == text:
		// Init's own output on the console; the kernel's lines are stamped.
	case strings.HasPrefix(message, "rdmashim: "), advice.MatchString(message):
	case stall.MatchString(message):
		if len(j.stalls) < maxComplaints && !slices.Contains(j.stalls, message) {
			j.stalls = append(j.stalls, message)
		}
		j.following = 0
	case complaint.MatchString(message):
		if slices.Contains(j.complaints, message) {
			return
		}
		if j.count++; j.count <= maxComplaints {
			j.complaints = append(j.complaints, message)
			j.following = complaintLines
		}
	case j.following > 0:
		j.following--
		if !slices.Contains(j.complaints, message) {
			j.complaints = append(j.complaints, message)
		}
		if strings.HasPrefix(message, "---[ end") {
			j.following = 0
		}
	}
}

func (j *logJudge) verdict() (complaints, stalls []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.complaints), slices.Clone(j.stalls)
}

func (j *logJudge) lastLine() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// source returns a writer for one of the log's sources.
func (j *logJudge) source() *lineWriter {
	return &lineWriter{each: func(line string) { j.line(strings.TrimRight(line, "\r")) }}
}
