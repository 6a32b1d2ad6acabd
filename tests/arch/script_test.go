package arch

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScript calls functions of tools/test: what counts as there, and which
// skips make a run incomplete.
func TestScript(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte(`=== RUN   TestA
    a_test.go:1: this machine has no ::1; enable IPv6
--- SKIP: TestA (0.00s)
=== RUN   TestB
    b_test.go:1: no tshark; this machine can have it
--- SKIP: TestB (0.00s)
=== RUN   TestD
    d_test.go:1: tools/test --all runs it; RDMASHIM_TESTS=all does, too
--- SKIP: TestD (0.00s)
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
		"TestD: tools/test --all runs it; RDMASHIM_TESTS=all does, too",
		"2",
	}, strings.Split(strings.TrimSpace(string(out)), "\n"))
}

// TestLacking: where a test is skipped for want of IPv6, which no package
// brings, its reason is one that makes no run incomplete.
func TestLacking(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			reason, isText := call.Args[0].(*ast.BasicLit)
			if ok && isText && strings.HasPrefix(f.Sel.Name, "Skip") && strings.Contains(reason.Value, "IPv6") {
				require.True(t, strings.HasPrefix(reason.Value, `"this machine `), "%s: %s", s.path, reason.Value)
			}
			return true
		})
	}
}

// TestRacing: the race detector's run of tools/test has the packages that start
// goroutines, in a test or in what they import.
func TestRacing(t *testing.T) {
	script := `eval "$(sed -n "/^racing() {/,/^}/p" tools/test)"; racing ./rnic ./rnic/engine ./rnic/wire ./tools/rdmashim/kernel`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.ElementsMatch(t, []string{module + "/rnic", module + "/rnic/wire", module + "/tools/rdmashim/kernel"}, strings.Fields(string(out)))
}

// TestOtherGo: tools/test tries the newest Go where the installed one is of the
// release that go.mod asks for, else what go.mod asks for.
func TestOtherGo(t *testing.T) {
	script := `eval "$(sed -n "/^othergo() {/,/^}/p" ../../tools/test)"
go() {
	case "$*" in
	*GoVersion*) echo 1.26.0 ;;
	"env GOVERSION") echo $here ;;
	"env GOHOSTOS") echo linux ;;
	"env GOHOSTARCH") echo amd64 ;;
	*) printf 'v0.0.1-go%s-amd64\n' 1.27.4.linux 1.27.10.linux 1.27.11.windows 1.28rc1.linux 1.26.11.linux ;;
	esac
}
for here in go1.26.8 go1.27.4; do othergo; done`
	out, err := exec.Command("bash", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{"go1.27.10", "go1.26.0"}, strings.Fields(string(out)))
}

// TestMoq: tools/test installs the other QMux where it is not there, or older
// than what it shall be.
func TestMoq(t *testing.T) {
	script := `set -e; eval "$(sed -n "/^moq() /,/^}/p" tools/test)"
have() { true; }
npm() { echo "npm $1"; mkdir -p node_modules; touch node_modules/.package-lock.json; }
logs=$0; cd "$logs"; mkdir -p tests/qmux/testdata/moq
touch -d "1 minute ago" tests/qmux/testdata/moq/package-lock.json
for state in none there; do echo $state; moq; cat npm; rm -f npm; touch npm; done
touch -d "1 minute" tests/qmux/testdata/moq/package-lock.json
echo changed; moq; cat npm`
	cmd := exec.Command("bash", "-c", script, t.TempDir())
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "none\nnpm ci\nthere\nchanged\nnpm ci\n", string(out))
}
