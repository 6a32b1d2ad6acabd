package preload

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test binary what rdmashim run is where it builds, and a
// program that finds the libraries.
func TestMain(m *testing.M) {
	var err error
	switch args := os.Args; {
	case len(args) == 4 && args[1] == "run" && args[2] == "--"+Build:
		err = BuildLibraries(args[3])
	case len(args) == 3 && args[1] == "find":
		_, err = findIn(args[2], os.Stderr)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
