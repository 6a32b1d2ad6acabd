package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

const (
	module = "github.com/rdmashim/rdmashim"
	root   = "../.."
)

// source is one Go file of the module.
type source struct {
	path    string // slash-separated, from the module's root
	pkg     string // its directory
	test    bool
	imports []string
	file    *ast.File
}

// sources parses the module's files once.
func sources(t *testing.T) []source {
	t.Helper()
	all := must.Get(parsed())(t)
	require.NotEmpty(t, all)
	return all
}

var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(p) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		s := source{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), file: f}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

// allowed lists, for each package, which of the module's own packages its
// sources (not its tests) may import. A package that is not listed may import
// nothing of the module.
var allowed = map[string][]string{
	"kshim":                              {"kshim/abi"},
	"kshim/abi":                          {},
	"kshim/abi/abitest":                  {"kshim/abi"},
	"kshim/privatefile":                  {},
	"kshim/fault":                        {},
	"kshim/parties":                      {},
	"kshim/peercred":                     {},
	"kshim/gidtable":                     {},
	"kshim/nldev":                        {},
	"kshim/arena":                        {},
	"kshim/ring":                         {"kshim/abi"},
	"kshim/verbs":                        {"kshim/gidtable", "kshim", "kshim/abi", "kshim/ring"},
	"kshim/rdmacm":                       {"kshim", "kshim/abi", "kshim/verbs"},
	"kshim/driver":                       {"kshim/abi", "kshim/ring"},
	"kshim/driver/simple":                {"kshim/abi", "kshim/driver", "kshim/ring"},
	"kshim/emu":                          {"kshim", "kshim/abi", "kshim/arena", "kshim/driver", "kshim/fault", "kshim/ring"},
	"kshim/host":                         {"kshim", "kshim/abi"},
	"kshim/cbuild":                       {},
	"kshim/cmemory":                      {"kshim/fault"},
	"kshim/planted":                      {"kshim", "kshim/privatefile"},
	"kshim/preload":                      {"kshim/cbuild", "kshim/emu", "kshim/planted"},
	"kshim/rdmanl":                       {"kshim/abi", "kshim/emu", "kshim/nldev", "kshim/peercred"},
	"kshim/far":                          {"kshim/driver"},
	"kshim/supervise":                    {"kshim", "kshim/abi", "kshim/driver", "kshim/emu", "kshim/far", "kshim/planted", "kshim/rdmanl", "kshim/refuse", "kshim/supervise/notif", "kshim/trace"},
	"kshim/supervise/notif":              {},
	"kshim/supervise/broker":             {"kshim/far", "kshim/supervise/notif"},
	"kshim/refuse":                       {"kshim", "kshim/abi", "kshim/fault", "kshim/ruletext", "kshim/trace"},
	"kshim/ruletext":                     {},
	"kshim/trace":                        {"kshim", "kshim/abi", "kshim/fault", "kshim/privatefile"},
	"rnic/crc":                           {},
	"rnic/wire":                          {"rnic/crc"},
	"tests/wiretest":                     {"rnic/wire"},
	"rnic/mem":                           {"kshim/abi", "kshim/fault", "rnic/crc"},
	"rnic/splitmix":                      {},
	"rnic/link":                          {"rnic/crc", "rnic/link/rules", "rnic/splitmix", "rnic/wire"},
	"rnic/link/rules":                    {"kshim/ruletext", "rnic/wire"},
	"rnic/link/udp":                      {"rnic/link", "rnic/link/udp/ports", "rnic/wire"},
	"rnic/link/udp/ports":                {},
	"rnic/link/shm":                      {"kshim/arena", "kshim/fault", "rnic/link", "rnic/wire", "kshim/parties", "kshim/peercred", "kshim/privatefile"},
	"tools/lab/rawudp":                   {},
	"rnic/link/sim":                      {"rnic/link", "rnic/wire"},
	"rnic/link/capture":                  {"kshim/privatefile", "rnic/link", "rnic/wire"},
	"tools/rdmashim/dump/dissect":        {"rnic/wire"},
	"tools/rdmashim/dump/flow":           {"tools/rdmashim/dump/dissect", "rnic/wire"},
	"tools/rdmashim/dump/qmux":           {"tools/rdmashim/dump/dissect", "rnic/wire", "uapi/msgring/core", "uapi/qmux/wire"},
	"tools/rdmashim/dump/live":           {"tools/rdmashim/dump/dissect", "rnic/wire"},
	"tests/virtual":                      {"rnic/splitmix", "kshim/abi", "rnic/engine", "rnic/engine/path", "rnic/mem", "rnic/wire"},
	"tests/foreign":                      {"rnic/engine", "rnic/wire", "tests/virtual"},
	"tests/soak":                         {"kshim/abi", "rnic/engine", "tests/virtual", "rnic/mem", "rnic/wire"},
	"rnic/cm":                            {"rnic/wire"},
	"rnic/drive":                         {"rnic/link"},
	"rnic/guard":                         {"rnic/engine", "rnic/link", "rnic/wire"},
	"rnic/engine":                        {"kshim/abi", "rnic/crc", "rnic/engine/path", "rnic/mem", "rnic/wire"},
	"rnic/engine/path":                   {},
	"rnic":                               {"kshim/abi", "kshim/driver", "kshim/ring", "rnic/cm", "rnic/drive", "rnic/engine", "rnic/engine/path", "rnic/guard", "rnic/link", "rnic/mem", "rnic/wire"},
	"uapi":                               {"kshim", "kshim/abi", "kshim/rdmacm", "kshim/ring", "kshim/verbs", "uapi/internal/admission", "uapi/internal/device", "uapi/internal/errs", "uapi/internal/handle", "uapi/internal/pages", "uapi/loopback", "uapi/stats"},
	"uapi/internal/admission":            {},
	"uapi/internal/device":               {"kshim", "kshim/abi", "kshim/gidtable", "kshim/parties", "kshim/peercred", "kshim/refuse", "kshim/ruletext", "kshim/verbs", "rnic/link/rules", "rnic/link/udp/ports", "uapi/internal/errs", "uapi/loopback", "uapi/stats"},
	"uapi/internal/errs":                 {},
	"uapi/internal/handle":               {},
	"uapi/internal/pages":                {"kshim/arena"},
	"uapi/loopback":                      {},
	"uapi/minikernel":                    {"kshim/emu", "uapi/internal/device"},
	"uapi/stats":                         {"kshim/privatefile", "kshim/parties", "kshim/peercred"},
	"uapi/qmux/wire":                     {},
	"uapi/qmux":                          {"uapi/qmux/core", "uapi/qmux/wire"},
	"uapi/qmux/core":                     {"uapi/qmux/wire"},
	"uapi/rpc":                           {"uapi", "uapi/rpc/session"},
	"uapi/capi":                          {"kshim/cbuild"},
	"uapi/capi/lib":                      {"kshim/cmemory", "uapi"},
	"uapi/preload/lib":                   {"kshim", "kshim/cmemory", "kshim/driver", "kshim/emu", "kshim/planted", "kshim/preload", "kshim/rdmanl", "kshim/refuse", "kshim/trace", "uapi", "uapi/minikernel"},
	"uapi/uapitest":                      {"uapi"},
	"uapi/msgring":                       {"uapi", "uapi/msgring/core"},
	"uapi/rdmanet":                       {"uapi", "uapi/loopback", "uapi/msgring"},
	"uapi/rdmanet/rdmanettest":           {"uapi", "uapi/rdmanet", "uapi/uapitest"},
	"uapi/registration":                  {"uapi", "kshim/parties", "uapi/qmux", "uapi/rdmanet", "uapi/registration/internal/address"},
	"uapi/registration/internal/address": {},
	"uapi/registration/quicudp":          {"kshim/parties", "uapi/qmux", "uapi/registration", "uapi/registration/internal/address"},
	"uapi/msgring/core":                  {},
	"uapi/rpc/session":                   {"uapi", "uapi/msgring", "kshim/parties", "uapi/rpc/session/core", "uapi/rpc/session/wire"},
	"uapi/rpc/session/wire":              {},
	"uapi/rpc/session/core":              {"uapi/rpc/session/wire"},
	"tests/nfs":                          {"tests/nfs/xprt", "uapi"},
	"tests/nfs/xprt":                     {"uapi"},
	"tests/leak":                         {},
	"tests/must":                         {},
	"tests/linktest":                     {"rnic/link", "rnic/link/sim", "rnic/link/udp"},
	"tools/lab/netpath":                  {"tools/internal/bump"},
	"tools/internal/bump":                {"rnic/link/rules", "rnic/wire"},
	"tools/rdmashim/bridge":              {"kshim/privatefile", "kshim/ruletext", "rnic/link/rules", "tools/internal/bump"},
	"tests/netns":                        {},
	"tests/amount":                       {},
	"tests/built":                        {},
	"tests/plant":                        {"tests/amount"},
	"tests/script":                       {},
	"tests/explore":                      {"rnic/splitmix"},
	"tests/kerneltest":                   {"kshim", "kshim/abi", "kshim/driver", "kshim/ring"},
	"netlinkmgr":                         {"kshim/gidtable", "kshim/nldev"},
	"tests/netlinktest":                  {"netlinkmgr", "kshim/nldev"},
	"vm":                                 {"netlinkmgr", "vm/guest"},
	"vm/guest":                           {"netlinkmgr"},
	"vm/vmtest":                          {"tests/amount", "tests/built", "vm"},
	"vm/cprograms":                       {"vm"},
	"tools/rdmashim/sample/diskload":     {},
	"tools/internal/nvme/wire":           {},
	"tools/internal/peer":                {"kshim/parties", "uapi"},
	"tools/rdmashim/demo":                {"tools/internal/peer", "uapi"},
	"tools/rdmashim/sample":              {"tools/internal/peer", "tools/rdmashim/echo", "tools/rdmashim/sample/nvme", "tools/rdmashim/sample/samplepb", "uapi", "uapi/rpc", "uapi/rpc/session"},
	"tools/rdmashim/sample/nvme":         {"tools/internal/nvme/wire", "tools/internal/peer", "tools/rdmashim/sample/diskload", "uapi"},
	"tools/rdmashim/sample/samplepb":     {},
	"tools/rdmashim/stream":              {"tools/internal/peer", "uapi", "uapi/rdmanet"},
	"tools/rdmashim/echo":                {"tools/internal/peer", "tools/rdmashim/stream", "uapi", "uapi/qmux", "uapi/qmux/wire", "uapi/registration", "uapi/registration/quicudp"},
	"tools/rdmashim/perf":                {"rnic/splitmix", "tools/internal/peer", "uapi"},
	"tools/lab":                          {"tools/lab/suite", "tools/rdmashim/kernel", "tools/rdmashim/perf", "tools/rdmashim/run"},
	"tools/lab/suite":                    {"kshim/ring", "netlinkmgr", "tools/internal/peer", "tools/rdmashim/perf", "tools/rdmashim/sample/diskload", "tools/rdmashim/sample/nvme", "tools/lab/netpath", "tools/lab/rawudp", "uapi", "uapi/qmux", "uapi/rdmanet", "uapi/registration", "uapi/registration/quicudp", "vm", "vm/cprograms"},
	"tools/rdmashim/vm":                  {"vm", "vm/guest"},
	"tools/rdmashim/top":                 {"netlinkmgr", "uapi/stats"},
	"tools/rdmashim/dump":                {"kshim/privatefile", "rnic/wire", "tools/internal/nvme/wire", "tools/rdmashim/dump/dissect", "tools/rdmashim/dump/flow", "tools/rdmashim/dump/live", "tools/rdmashim/dump/qmux", "tools/rdmashim/explain", "uapi/qmux/wire"},
	"tools/rdmashim/rdma":                {"netlinkmgr", "kshim/nldev"},
	"tools/rdmashim/run":                 {"kshim/preload", "kshim/supervise", "kshim/supervise/broker", "kshim/supervise/notif", "uapi/minikernel", "uapi/stats"},
	"tools/rdmashim/capi":                {"uapi/capi"},
	"tools/rdmashim/kernel":              {"kshim", "kshim/emu", "kshim/host", "kshim/peercred", "kshim/preload", "kshim/privatefile", "kshim/supervise", "kshim/supervise/broker", "kshim/trace", "kshim/verbs", "tools/rdmashim/explain", "tools/internal/cli", "uapi", "uapi/minikernel"},
	"tools/rdmashim/explain":             {"kshim/abi", "kshim/refuse", "rnic/link/rules", "rnic/wire", "uapi"},
	"tools/rdmashim/doctor":              {"kshim/abi", "kshim/preload", "kshim/supervise/notif", "netlinkmgr", "rnic/link/shm", "rnic/link/udp/ports", "tools/internal/peer", "uapi"},
	"tools/internal/cli":                 {"kshim/refuse", "uapi", "uapi/loopback"},
	"tools/internal/cli/clitest":         {"tests/leak", "tools/internal/peer"},
	"tools/rdmashim": {
		"uapi",
		"uapi/stats",
		"netlinkmgr",
		"kshim/abi",
		"kshim/emu",
		"vm",
		"vm/cprograms",
		"vm/guest",
		"rnic/wire",
		"kshim/privatefile",
	},
}

// amongCommands reports whether the tool's root imports a subject's folder, or
// a folder of tools what all share.
func amongCommands(from, to string) bool {
	const tool, shared = "tools/rdmashim", "tools/internal/cli"
	if from == tool && strings.HasPrefix(to, tool+"/") {
		return true
	}
	return to == shared && strings.HasPrefix(from, "tools/")
}

// storeys are the folders at the top, the lowest first. Those of one storey do
// not know each other.
var storeys = [][]string{{"kshim"}, {"rnic", "netlinkmgr"}, {"uapi", "vm"}, {"tools"}}

// storey returns the number of a package's storey, -1 for tests.
func storey(pkg string) int {
	top, _, _ := strings.Cut(pkg, "/")
	return slices.IndexFunc(storeys, func(tops []string) bool { return contains(tops, top) })
}

// TestStoreys: no package of the product imports one of a storey above it, of
// another folder of its own storey, or of tests.
func TestStoreys(t *testing.T) {
	crossed := 0
	for _, s := range sources(t) {
		if s.test || storey(s.pkg) < 0 {
			continue
		}
		for _, name := range s.imports {
			pkg, own := ours(name)
			from, _, _ := strings.Cut(s.pkg, "/")
			to, _, _ := strings.Cut(pkg, "/")
			if !own || from == to || contains([]string{"tests/amount", "tests/built", "tests/leak"}, pkg) && strings.HasSuffix(s.pkg, "test") {
				continue
			}
			if crossed++; storey(pkg) < 0 || storey(pkg) >= storey(s.pkg) {
				t.Errorf("%s imports %s, which does not lie below it", s.path, pkg)
			}
		}
	}
	require.NotZero(t, crossed, "the rule looks at nothing")
}

// assembly lists the files that may put parts together.
var assembly = []string{"uapi/internal/device/open.go", "uapi/internal/device/minikernel.go", "uapi/internal/device/softdevice.go"}

// ours returns the module-relative name of an import of the module's own.
func ours(name string) (string, bool) {
	return strings.CutPrefix(name, module+"/")
}

func TestImportRules(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || contains(assembly, s.path) {
			continue
		}
		for _, name := range s.imports {
			if name == module {
				t.Errorf("%s imports the module's root, which is no package", s.path)
			}
			if pkg, ok := ours(name); ok && !contains(allowed[s.pkg], pkg) && !amongCommands(s.pkg, pkg) {
				t.Errorf("%s imports %s: %s may import only %v", s.path, pkg, s.pkg, allowed[s.pkg])
			}
		}
	}
}

// TestAssembly holds that each part is put in its place once, by one file of
// the list.
func TestAssembly(t *testing.T) {
	parts := []string{"kshim/emu", "kshim/host", "kshim/trace", "rnic", "rnic/link/udp", "rnic/link/shm", "rnic/link/sim"}
	var found []string
	for _, s := range sources(t) {
		if !contains(assembly, s.path) {
			continue
		}
		for _, name := range s.imports {
			if pkg, ok := ours(name); ok && contains(parts, pkg) {
				found = append(found, pkg)
			}
		}
	}
	require.ElementsMatch(t, parts, found, "%v assemble the embedded path", assembly)
}

// TestPureBottoms holds that wire and abi import the standard library only and
// that the engines have no clock, socket, lock or log.
func TestPureBottoms(t *testing.T) {
	forbidden := map[string][]string{
		"rnic/engine": {"time", "net", "os", "log", "log/slog", "sync", "sync/atomic", "context", "math/rand", "math/rand/v2"},
	}
	forbidden["rnic/engine/path"] = forbidden["rnic/engine"]
	forbidden["rnic/cm"] = forbidden["rnic/engine"]
	forbidden["uapi/msgring/core"] = forbidden["rnic/engine"]
	forbidden["uapi/qmux/core"] = forbidden["rnic/engine"]
	forbidden["uapi/rpc/session/core"] = forbidden["rnic/engine"]
	standardOnly := []string{"uapi/msgring/core", "rnic/wire", "uapi/qmux/wire", "uapi/qmux/core", "uapi/rpc/session/wire", "uapi/rpc/session/core", "kshim/abi", "kshim", "rnic/mem", "rnic/link"}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, name := range s.imports {
			if contains(forbidden[s.pkg], name) {
				t.Errorf("%s imports %s: time is an argument there and the caller serialises", s.path, name)
			}
			first, _, _ := strings.Cut(name, "/")
			if contains(standardOnly, s.pkg) && strings.Contains(first, ".") {
				if _, own := ours(name); !own {
					t.Errorf("%s imports %s: %s uses the standard library only", s.path, name, s.pkg)
				}
			}
		}
	}
}

// unsafeRooms are the few places that may use unsafe; a name that ends in a
// slash is a package.
var unsafeRooms = []string{"kshim/cmemory/", "kshim/host/", "uapi/preload/lib/", "kshim/ring/", "uapi/capi/lib/", "kshim/emu/usermem.go", "kshim/far/probe_linux.go", "kshim/supervise/notif/sys.go", "kshim/supervise/broker/signal.go", "rnic/mem/word.go", "rnic/link/shm/word.go", "rnic/link/udp/batch_mmsg.go"}

func TestUnsafeRooms(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !contains(s.imports, "unsafe") || s.test {
			continue
		}
		ok := false
		for _, room := range unsafeRooms {
			if s.path == room || strings.HasSuffix(room, "/") && strings.HasPrefix(s.path, room) {
				ok, used[room] = true, true
			}
		}
		if !ok {
			t.Errorf("%s uses unsafe; it lives in %v only", s.path, unsafeRooms)
		}
	}
	require.True(t, used["kshim/ring/"], "the rule looks at nothing: kshim/ring must use unsafe")
}

// TestNoCgo holds the promise of a build without a C compiler.
func TestNoCgo(t *testing.T) {
	for _, s := range sources(t) {
		if contains(s.imports, "C") && s.pkg != "uapi/preload/lib" && s.pkg != "uapi/capi/lib" {
			t.Errorf("%s uses cgo", s.path)
		}
	}
}

// TestLinkname: no reaching into the runtime behind the compiler's back.
func TestLinkname(t *testing.T) {
	for _, s := range sources(t) {
		for _, g := range s.file.Comments {
			for _, c := range g.List {
				if strings.HasPrefix(c.Text, "//go:linkname") {
					t.Errorf("%s uses %s", s.path, c.Text)
				}
			}
		}
	}
}

var contains = slices.Contains[[]string]
