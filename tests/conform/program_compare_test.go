//go:build linux || darwin

package conform

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// mostUnsteady is how many programs rxe may see otherwise once.
const mostUnsteady = 1

// comparePrograms runs the programs of many seeds on two kernels. CONFORM_SEED
// is the first seed, CONFORM_PROGRAMS how many there are; CONFORM_SEED alone
// repeats one.
//
// A program's observations are a function of its seed, but rxe on a busy
// machine has seen one of some thousand otherwise, and not again. So a program
// that differs is run on rxe once more: the kernel is declared unsteady if it
// now sees what the other kernel saw, and that is printed and bounded.
func comparePrograms(t *testing.T, x, y *system) {
	rxe := y.rxe()
	first, n := uint64(1), uint64(amount.Of(30, 150))
	if rxe { // a guest emulates its processor
		n = uint64(amount.Of(20, 60))
	}
	if v, ok := fromEnv(t, "CONFORM_SEED"); ok {
		first, n = v, 1
	}
	if v, ok := fromEnv(t, "CONFORM_PROGRAMS"); ok {
		n = v
	}
	steps, fails, differ, unsteady := 0, 0, 0, 0
	for seed := first; seed < first+n && differ < 5; seed++ {
		p, q := runProgram(t, x, rxe, seed), runProgram(t, y, rxe, seed)
		steps += p.steps
		fails += p.fails
		text := diff(p.lines, q.lines)
		if text == "" && p.err == nil {
			continue
		}
		if rxe && p.err == nil && unsteady < mostUnsteady && diff(p.lines, runProgram(t, y, rxe, seed).lines) == "" {
			unsteady++
			fmt.Printf("conform: programs kernel=%s seed=%d differed once and not again: %s\n", y.name, seed, firstDifference(text))
			continue
		}
		differ++
		if p.err != nil && text == "" {
			text = fmt.Sprintf("%v on both:\n%s", p.err, diff(nil, p.lines))
		}
		t.Errorf("the program of seed %d differs (- %s, + %s); repeat it with CONFORM_SEED=%d:\n%s", seed, x.name, y.name, seed, text)
	}
	fmt.Printf("conform: programs kernel=%s,%s programs=%d first=%d steps=%d failures-provoked=%d different=%d unsteady=%d\n",
		x.name, y.name, n, first, steps, fails, differ, unsteady)
}

// firstDifference is where a diff's sides part.
func firstDifference(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") && len(parts) < 4 {
			parts = append(parts, strings.TrimSpace(line))
		}
	}
	return strings.Join(parts, " / ")
}

func fromEnv(t *testing.T, name string) (uint64, bool) {
	s := os.Getenv(name)
	if s == "" {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err, name)
	return v, true
}

func TestProgramsOnEmulators(t *testing.T) {
	comparePrograms(t, emulatorSim(t), emulatorUDP(t))
}
