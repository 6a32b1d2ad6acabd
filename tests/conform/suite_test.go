//go:build linux || darwin

package conform

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var recordTo = flag.String("record", "", "write the observations to this directory, a folder per kernel")

// suite is every test, in order.
func suite() []test {
	return slices.Concat(
		deviceTests, memoryTests, queueTests, stateTests, attrTests, dataTests, errorTests, limitTests, eventTests, abiTests, abiFileTests, uapiTests, uapiChangeTests, uapiDomainTests, uapiSharedTests, uapiWaitTests, uapiWindowTests,
		changeTests, datagramTests, sharedTests, unreliableTests, windowTests, multicastTests, tableTests(&coverage{}), moduleTests, cmTests, cmConnectionTests, cmDatagramTests, cmGroupTests, cmQueryTests, cmOlderTests, cmStateTests(),
	)
}

// leastTests is how many the suite must have.
const leastTests = 150

func TestEmulatorSim(t *testing.T) {
	amount.Unraced(t)
	runSuite(t, emulatorSim(t), suite())
}

func TestEmulatorUDP(t *testing.T) { runSuite(t, emulatorUDP(t), suite()) }

// score is the suite's result on one kernel.
type score struct{ tests, identical, declared int }

// runSuite runs tests on a kernel and prints the line that sums it up.
func runSuite(t *testing.T, sys *system, tests []test) {
	recorded, err := readRecords()
	require.NoError(t, err)
	seen := records{}
	var s score
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s.tests++
			r := newRig(t, sys)
			// A case's cleanups close its leftovers, so it is judged after
			// them.
			t.Cleanup(func() {
				if !t.Failed() {
					s.judge(t, sys, tc, r.lines, recorded)
				}
			})
			tc.run(r)
			seen[tc.name] = r.lines
		})
	}
	fmt.Printf("conform: kernel=%s tests=%d identical=%d declared=%d\n", sys.name, s.tests, s.identical, s.declared)
	if *recordTo != "" {
		header := "Observed on " + sys.name + "."
		require.NoError(t, seen.write(filepath.Join(*recordTo, sys.name), header, suite()))
	}
}

// judge compares an observation with the recorded one.
func (s *score) judge(t *testing.T, sys *system, tc test, lines []string, recorded records) {
	want, ok := recorded[tc.name]
	if !ok {
		t.Errorf("nothing is recorded for %s; on %s it gave:\n%s", tc.name, sys.name, strings.Join(lines, "\n"))
		return
	}
	d, expected := declaredFor(tc.name, sys.name), "recorded"
	if d != nil {
		expected = "declared"
		if want, ok = d.apply(want); !ok {
			t.Errorf("%s: the declared difference names lines that are not recorded", tc.name)
			return
		}
	}
	if text := diff(want, lines); text != "" {
		t.Errorf("%s differs on %s (- %s, + seen):\n%s", tc.name, sys.name, expected, text)
		return
	}
	if d == nil {
		s.identical++
		return
	}
	fmt.Printf("conform: kernel=%s declared %s: %s\n", sys.name, tc.name, d.reason)
	s.declared++
}

// TestSuite holds the table itself: names, records and declarations belong
// together.
func TestSuite(t *testing.T) {
	names := map[string]bool{}
	for _, tc := range suite() {
		require.False(t, names[tc.name], "%s is there twice", tc.name)
		require.NotEqual(t, tc.name, tc.group(), "%s has no group", tc.name)
		names[tc.name] = true
	}
	require.GreaterOrEqual(t, len(names), leastTests)
	recorded, err := readRecords()
	require.NoError(t, err)
	for name := range recorded {
		require.True(t, names[name], "%s is recorded, but no test", name)
	}
	require.LessOrEqual(t, len(differences), mostDeclared)
	require.LessOrEqual(t, len(newerDifferences), mostNewer)
	for _, d := range slices.Concat(differences, newerDifferences) {
		require.True(t, names[d.test], "%s is declared, but no test", d.test)
		require.NotEmpty(t, d.reason)
		require.NotEmpty(t, d.lines)
		_, ok := d.apply(recorded[d.test])
		require.True(t, ok, "%s is declared on %s with lines that are not recorded", d.test, d.kernels)
	}
}
