package suite

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// hostTime is processor time of this machine in ticks: all that went by, and
// what its host gave to others (/proc/stat, proc(5)).
type hostTime struct{ all, stolen uint64 }

// readHostTime reads it; zero where nothing tells.
func readHostTime() (t hostTime) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	const steal, columns = 7, 8 // those behind are parts of the first
	for i, word := range strings.Fields(strings.TrimPrefix(line, "cpu ")) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || i >= columns {
			break
		}
		t.all += n
		if i == steal {
			t.stolen = n
		}
	}
	return t
}

// hostState says what the machine was like since a time.
func hostState(since hostTime) string {
	state := fmt.Sprintf("%d processors", runtime.NumCPU())
	if now := readHostTime(); now.all > since.all {
		state += fmt.Sprintf(", %.1f %% of their time stolen", 100*float64(now.stolen-since.stolen)/float64(now.all-since.all))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ := strings.Cut(string(text), " ")
		state += ", load " + load
	}
	return state
}
