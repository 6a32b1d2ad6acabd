package cli

import (
	"regexp"
	"runtime/debug"
)

// Next is the release that the sources lead to; docs/CHANGELOG.md has it on
// top.
const Next = "0.2.0"

// Version is the release that the program was built from, else Next with -dev.
var Version = release(debug.ReadBuildInfo())

const module = "github.com/rdmashim/rdmashim"

var (
	tagged = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	// pseudo is the end of a version that the go command makes of a commit
	// without a tag.
	pseudo = regexp.MustCompile(`\d{14}-[0-9a-f]{12}$`)
)

// release returns the module's version if it is that of a tag, as the go
// command notes it when it builds an unchanged checkout or a module that it
// fetched.
func release(info *debug.BuildInfo, ok bool) string {
	if ok {
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			if m.Path == module && m.Replace == nil && tagged.MatchString(m.Version) && !pseudo.MatchString(m.Version) {
				return m.Version[1:]
			}
		}
	}
	return Next + "-dev"
}
