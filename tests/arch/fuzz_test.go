package arch

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// maxCorpusFile bounds a file of a corpus, so that the repository stays small.
const maxCorpusFile = 16 << 10

// TestFuzzCorpora holds that every fuzz target has a corpus in the repository,
// which go test tries each time, and that no corpus is left without its target.
func TestFuzzCorpora(t *testing.T) {
	targets := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			dir := path.Join(s.pkg, "testdata/fuzz", f.Name.Name)
			targets[dir] = true
			files, _ := os.ReadDir(filepath.Join(root, dir))
			if len(files) == 0 {
				t.Errorf("%s has no corpus in %s: run tools/fuzz, and keep some of what it finds interesting (go env GOCACHE)/fuzz", f.Name.Name, dir)
			}
			for _, file := range files {
				info := must.Get(file.Info())(t)
				if info.Size() > maxCorpusFile {
					t.Errorf("%s/%s has %d bytes, more than %d", dir, file.Name(), info.Size(), maxCorpusFile)
				}
			}
		}
	}
	require.Greater(t, len(targets), 30)
	found := must.Get(filepath.Glob(filepath.Join(root, "*/testdata/fuzz/*")))(t)
	deeper := must.Get(filepath.Glob(filepath.Join(root, "*/*/testdata/fuzz/*")))(t)
	for _, dir := range append(found, deeper...) {
		rel := must.Get(filepath.Rel(root, dir))(t)
		if !targets[filepath.ToSlash(rel)] {
			t.Errorf("%s is the corpus of no fuzz target", rel)
		}
	}
}
