package suite

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// explained is where "What limits" of docs/speed.md tells of the rows whose
// work or reference has these words.
var explained = map[string]string{
	"WRITE 1 MiB":         "and Go's TCP",
	"net.Conn":            "Streams over net.Conn",
	"HTTP":                "in HTTP a packet",
	"new connections":     "A connection cost",
	"idle connections":    "Of an idle one",
	"QMux":                "QMux, 0",
	"RPC":                 "RPC: p99",
	"registration":        "on TLS all records",
	"grpc-go over":        "grpc-go over net.Conn has",
	"1,000 queue pairs":   "1,000 and 10,000 queue pairs",
	"10,000 queue pairs":  "1,000 and 10,000 queue pairs",
	"goodput on kernel":   "kernel rxe against perftest: bandwidth",
	"rate on kernel":      "kernel rxe against perftest: bandwidth",
	"polling (µs)":        "Polling.",
	"64 B, polling":       "a switch",
	"ping-pong, polling,": "kernel rxe against perftest: bandwidth",
	"over a veth":         "over one veth in the guest",
	", path with":         "Paths: losses",
	", veth with":         "Veths with MTU 1500",
	"WRITE 64 B rate":     "WRITE 64 B rate, 16 a post",
	"ping-pong, waiting":  "Programs that wait",
	"at full depth":       "64 at full depth",
	"8 senders":           "Eight senders",
	"shm,":                "Shared memory",
	"supervised":          "Supervised programs",
}

// TestSuiteDocs: the table of docs/speed.md has the suite's rows in their
// order, with their targets, and the day; and explains what it says is not met.
func TestSuiteDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/speed.md")
	require.NoError(t, err)
	page := string(text)
	require.Regexp(t, `As it came out on \d{4}-\d\d-\d\d: .* two cores\s+\(Linux`, page)
	_, limits, found := strings.Cut(page, "\n## What limits\n")
	require.True(t, found)
	limits, _, _ = strings.Cut(limits, "\n## ")
	limits = strings.Join(strings.Fields(limits), " ")

	s := &suite{}
	table := slices.Concat(s.table(), s.guestTable(), s.pathTable())
	_, shown, found := strings.Cut(page, "| "+strings.Join(head, " | ")+" |\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "\n\n")
	lines := strings.Split(shown, "\n")[1:] // the rule
	if runtime.GOOS == "linux" {            // elsewhere there are no paths
		require.Len(t, lines, len(table))
	}
	unmet := regexp.MustCompile(`\| NO \|$`)
	for i, c := range table {
		r := c.row()
		want, has := r.cells(), strings.Split(strings.Trim(lines[i], "| "), " | ")
		require.Len(t, has, len(want), lines[i])
		for _, k := range []int{0, 2, 5} { // work, reference, target
			require.Equal(t, want[k], has[k], lines[i])
		}
		if !unmet.MatchString(lines[i]) {
			continue
		}
		told := false
		for words, where := range explained {
			told = told || strings.Contains(lines[i], words) && strings.Contains(limits, where)
		}
		require.True(t, told, "docs/speed.md does not say what limits %s", lines[i])
	}
}
