package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScript calls functions of tools/test: what counts as there, and which
// skips are for what a machine lacks.
func TestScript(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte(`=== RUN   TestA
    a_test.go:1: this machine has no ::1; enable IPv6
--- SKIP: TestA (0.00s)
=== RUN   TestB
    b_test.go:1: no tshark; this machine can have it
--- SKIP: TestB (0.00s)
=== RUN   TestC
--- PASS: TestC (0.00s)
`), 0o644))
	script := `for f in have skips lacking; do eval "$(sed -n "/^$f() /,/^}/p" ../../tools/test)"; done
for thing in sh /dev/null no-such-command /no/such/file "test 1 = 1" "test 1 = 2" "false<stdio.h>"; do
	have "$thing" && echo "$thing"
done
skips ` + log + ` | tee ` + log + `.skips
lacking ` + log + `.skips`
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{
		"sh", "/dev/null", "test 1 = 1",
		"TestA: this machine has no ::1; enable IPv6",
		"TestB: no tshark; this machine can have it",
		"1",
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))
}
