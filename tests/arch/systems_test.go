package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// listed is what 'go list -json' says of a package, or of one that is built for
// a test, as "net [net.test]".
type listed struct {
	Dir, ImportPath, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string
	Standard                 bool
	Module                   *struct {
		Main      bool
		GoVersion string
	}
}

// TestOtherSystems checks the types of all packages and their tests as other
// systems have them. A build needs what they import compiled, fifteen times the
// work: TestRelease has that of linux/arm64, the workflow "test" those of all.
func TestOtherSystems(t *testing.T) {
	amount.Rest(t)
	for _, target := range []string{"linux/arm64", "linux/386", "darwin/arm64", "freebsd/amd64", "windows/amd64"} {
		t.Run(target, func(t *testing.T) { checkTypes(t, target) })
	}
}

func checkTypes(t *testing.T, target string) {
	system, processor, _ := strings.Cut(target, "/")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-json=Dir,ImportPath,ForTest,GoFiles,ImportMap,Standard,Module", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	var packages []listed
	tested := map[string]bool{} // those of which a variant has the tests
	for d := json.NewDecoder(bytes.NewReader(must.Get(cmd.Output())(t))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if !strings.HasSuffix(p.ImportPath, ".test") { // go test's own
			packages = append(packages, p)
			tested[p.ForTest] = tested[p.ForTest] || strings.HasPrefix(p.ImportPath, p.ForTest+" ")
		}
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	bodies := 0
	for _, p := range packages { // what is imported comes first
		if p.ImportPath == "unsafe" {
			continue
		}
		files, of := token.NewFileSet(), []*ast.File(nil)
		for _, name := range p.GoFiles {
			of = append(of, must.Get(parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution))(t))
		}
		own := p.Module != nil && p.Module.Main
		c := types.Config{
			IgnoreFuncBodies: !own || tested[p.ImportPath],
			Sizes:            types.SizesFor("gc", processor),
			Error: func(err error) {
				if own {
					t.Error(err)
				}
			},
			Importer: imports(func(path string) (*types.Package, error) {
				if to, ok := p.ImportMap[path]; ok {
					path = to
				}
				if found := done[path]; found != nil {
					return found, nil
				}
				return nil, errors.New(path + " is not listed")
			}),
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			c.GoVersion = "go" + p.Module.GoVersion
		}
		path, _, _ := strings.Cut(p.ImportPath, " ")
		done[p.ImportPath], _ = c.Check(path, files, of, nil)
		if !c.IgnoreFuncBodies {
			bodies++
		}
	}
	require.Greater(t, bodies, 80, "packages of ours")
}

type imports func(path string) (*types.Package, error)

func (i imports) Import(path string) (*types.Package, error) { return i(path) }
