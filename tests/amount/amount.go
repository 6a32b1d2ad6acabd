package amount

import (
	"os"
	"testing"
)

// All says that nothing is left out, as tools/test has it with --all.
func All() bool { return os.Getenv("RDMASHIM_TESTS") == "all" }

// Of returns how many seeds or rounds a test runs.
func Of(usual, all int) int {
	if All() {
		return all
	}
	return usual
}

// Some returns the first of each n rows, or all of them.
func Some[T any](rows []T, n int) (some []T) {
	for i, row := range rows {
		if Part(i, n) {
			some = append(some, row)
		}
	}
	return some
}

// Part says whether a row is among those that run: one of each n, or any.
func Part(row, n int) bool { return All() || row%n == 0 }

// Rest skips a test that repeats what others prove. tools/test counts it among
// what it leaves out, by the skip's first words. The race detector's run, which
// is -short, does without it.
func Rest(t testing.TB) {
	t.Helper()
	if !All() || testing.Short() {
		t.Skip("tools/test --all runs it; RDMASHIM_TESTS=all does, too")
	}
}

// Unraced skips, under the race detector, a test in which it would see nothing
// new: of one goroutine, of other programs, or of what other tests run as well.
func Unraced(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("the race detector sees nothing new; run it without -race")
	}
}
