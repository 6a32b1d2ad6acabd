package arch

import (
	"bytes"
	"go/doc"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestEveryPackageHasDoc: doc.go says what a package is and what it is not, and
// a row of ARCHITECTURE.md where it stands.
func TestEveryPackageHasDoc(t *testing.T) {
	layout := must.Get(os.ReadFile(filepath.Join(root, "ARCHITECTURE.md")))(t)
	documented := map[string]bool{}
	packages := map[string]bool{}
	for _, s := range sources(t) {
		packages[s.pkg] = true
		if filepath.Base(s.path) == "doc.go" && s.file.Doc != nil && len(s.file.Doc.Text()) > 200 {
			documented[s.pkg] = true
		}
	}
	for pkg := range packages {
		if !documented[pkg] {
			t.Errorf("%s has no doc.go that says what it is, what it is not, and how a call flows", pkg)
		}
		if filepath.Base(pkg) != "guesttest" && !bytes.Contains(layout, []byte("\n| `"+pkg+"` |")) {
			t.Errorf("ARCHITECTURE.md has no row of %s", pkg)
		}
	}
}

var quoted = regexp.MustCompile("`([^`\n]+)`")

// pathLike says whether a quoted text claims to be a path of the repository.
func pathLike(s string) bool {
	if strings.ContainsAny(s, " $<>*{}()?=:,…") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "-") {
		return false
	}
	for _, top := range []string{"uapi", "kshim", "rnic", "netlinkmgr", "tools", "vm", "tests", "docs", ".ci", ".github"} {
		if s == top || strings.HasPrefix(strings.TrimPrefix(s, "./"), top+"/") {
			return true
		}
	}
	return false
}

var linked = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocumentedPathsExist holds ARCHITECTURE.md, README.md and docs to the tree.
func TestDocumentedPathsExist(t *testing.T) {
	docs := []string{"ARCHITECTURE.md", "README.md", "tests/testdata/README.md"}
	for _, dir := range []string{"docs", "docs/design"} {
		pages := must.Get(filepath.Glob(filepath.Join(root, dir, "*.md")))(t)
		require.NotEmpty(t, pages)
		for _, page := range pages {
			docs = append(docs, dir+"/"+filepath.Base(page))
		}
	}
	for _, doc := range docs {
		text := must.Get(os.ReadFile(filepath.Join(root, doc)))(t)
		named := 0
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			if !pathLike(m[1]) {
				continue
			}
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, m[1])
			}
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || target == "" && anchor != "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(doc), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
			}
		}
		if doc == "ARCHITECTURE.md" {
			require.Greater(t, named, 20, "ARCHITECTURE.md names the layout's paths")
		}
	}
}

// TestEveryPageIsLinked: docs/README.md has each page, docs/which.md leads to
// each that is for users, and ARCHITECTURE.md to each of docs/design.
func TestEveryPageIsLinked(t *testing.T) {
	text := func(name string) string {
		b := must.Get(os.ReadFile(filepath.Join(root, name)))(t)
		return string(b)
	}
	for _, c := range []struct{ from, pages, prefix string }{
		{"docs/README.md", "docs/*.md", "("},
		{"docs/which.md", "docs/*.md", "("},
		{"ARCHITECTURE.md", "docs/design/*.md", "(docs/design/"},
	} {
		pages := must.Get(filepath.Glob(filepath.Join(root, c.pages)))(t)
		for _, page := range pages {
			name := filepath.Base(page)
			if name != "README.md" && name != filepath.Base(c.from) && !strings.Contains(text(c.from), c.prefix+name) {
				t.Errorf("%s has no link to %s", c.from, name)
			}
		}
	}
}

// TestPublicPackages: docs/which.md leads to each package that programs import,
// and each has an example that go doc shows and go test runs.
func TestPublicPackages(t *testing.T) {
	examples := map[string]int{}
	for _, s := range sources(t) {
		for _, e := range doc.Examples(s.file) {
			if s.test && (e.Output != "" || e.EmptyOutput) {
				examples[s.pkg]++
			}
		}
	}
	text := must.Get(os.ReadFile(filepath.Join(root, "docs/which.md")))(t)
	for _, pkg := range append(promised(t, "v1"), promised(t, "experimental")...) {
		require.Contains(t, string(text), "`"+pkg+"`", "docs/which.md")
		require.NotZero(t, examples[pkg], "%s has no example", pkg)
	}
}

// TestDependencies: docs/design/dependencies.md says of each module that go.mod
// or a go.mod below tests requires what it is for, of each tool of the checks,
// and of no other one.
func TestDependencies(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join(root, "docs/design/dependencies.md")))(t)
	required := map[string]bool{}
	for file, pattern := range map[string]string{
		"go.mod":            `(?m)^(?:require)?[\t ]+(\S+) v\S+$`,
		"tests/grpc/go.mod": `(?m)^(?:require)?[\t ]+(\S+) v\S+$`,
		"tests/nfs/go.mod":  `(?m)^(?:require)?[\t ]+(\S+) v\S+$`,
		"tools/check.mod":   `(?m)^\t(\S+)/cmd/\w+$`,
	} {
		mod := must.Get(os.ReadFile(filepath.Join(root, file)))(t)
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(string(mod), -1)
		require.NotEmpty(t, all, file)
		for _, m := range all {
			if m[1] != module {
				required[m[1]] = true
			}
		}
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.*\\|$").FindAllStringSubmatch(string(page), -1) {
		told = append(told, m[1])
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(required)), told)
}

// TestTopLevel: nothing else lies at the top of the repository. A file that a
// reader of README.md left there, such as a capture, is not of the repository,
// if git can tell.
func TestTopLevel(t *testing.T) {
	allowed := strings.Fields("go.mod go.sum README.md ARCHITECTURE.md LICENSE uapi kshim rnic netlinkmgr tools vm tests docs .ci .git .github .gitignore")
	entries := must.Get(os.ReadDir(root))(t)
	for _, e := range entries {
		if !contains(allowed, e.Name()) && !untracked(e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}

// untracked reports whether git says that it does not know a name.
func untracked(name string) bool {
	if exec.Command("git", "-C", root, "rev-parse", "HEAD").Run() != nil {
		return false // no git, or no checkout of it
	}
	known, err := exec.Command("git", "-C", root, "ls-files", "--", name).Output()
	return err == nil && len(known) == 0
}
