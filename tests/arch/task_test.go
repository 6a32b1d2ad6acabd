package arch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// manyCalls is the number of functions and methods above which the
// documentation of a package has an index by task.
const manyCalls = 30

var (
	callLine = regexp.MustCompile(`^\S+: func (?:\(\*?(\w+)\) )?(\w+)`)
	typeLine = regexp.MustCompile(`^\S+: (?:type|var|const) (\w+)`)
	docLink  = regexp.MustCompile(`\[([A-Z]\w*(?:\.\w+)?)\]`)
)

// TestByTask: the documentation of a public package with many calls leads from
// tasks to them, and each name that a package's documentation links is there.
func TestByTask(t *testing.T) {
	for _, pkg := range slices.Concat(promised(t, "v1"), promised(t, "experimental")) {
		names, calls := map[string]bool{}, 0
		for _, line := range exported(t, pkg) {
			if m := callLine.FindStringSubmatch(line); m != nil {
				calls++
				names[strings.TrimPrefix(m[1]+"."+m[2], ".")] = true
			} else if m := typeLine.FindStringSubmatch(line); m != nil {
				names[m[1]] = true
			}
		}
		for _, s := range sources(t) {
			if s.pkg != pkg || filepath.Base(s.path) != "doc.go" {
				continue
			}
			doc := s.file.Doc.Text()
			if calls > manyCalls && !strings.Contains(doc, "# By task\n") {
				t.Errorf("%s has %d functions and methods, and no index by task", s.path, calls)
			}
			for _, m := range docLink.FindAllStringSubmatch(doc, -1) {
				if !names[m[1]] {
					t.Errorf("%s links %s, which is not there", s.path, m[1])
				}
			}
		}
	}
}
