package main

import (
	"encoding"
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/bridge"
	"github.com/rdmashim/rdmashim/tools/rdmashim/demo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/doctor"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/qmux"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// keySet is the keys of a command's JSON: the path of each ("pairs[].a.qpn"),
// and whether it may be absent. A path's * stands for any key.
type keySet map[string]bool

var (
	jsonHeading = regexp.MustCompile("^## (.*)$")
	jsonRow     = regexp.MustCompile(`^\| (.*?) \| (.+) \|$`)
	likeAnother = regexp.MustCompile("^as `([^`]+)`$") // the keys below are those of another
	inBackticks = regexp.MustCompile("`([^`]+)`")
)

// documentedJSON reads docs/json.md: a section's tables under each of the
// commands that its heading names.
func documentedJSON(t *testing.T) map[string]keySet {
	t.Helper()
	all := map[string]keySet{}
	var keys keySet
	for line := range strings.Lines(string(readFile(t, filepath.Join(repository, "docs", "json.md")))) {
		line = strings.TrimSuffix(line, "\n")
		if m := jsonHeading.FindStringSubmatch(line); m != nil {
			keys = nil
			for _, name := range inBackticks.FindAllStringSubmatch(m[1], -1) {
				if keys == nil {
					keys = keySet{}
				}
				all[name[1]] = keys
			}
			continue
		}
		m := jsonRow.FindStringSubmatch(line)
		if m == nil || keys == nil {
			continue
		}
		like := likeAnother.FindStringSubmatch(m[2])
		for _, key := range inBackticks.FindAllStringSubmatch(m[1], -1) {
			path, optional := strings.CutSuffix(key[1], "?")
			require.NotContains(t, keys, path, "documented twice")
			below, any := strings.CutSuffix(path, ".*")
			if !any || like == nil {
				keys[path] = optional || path == "*" || any
				continue
			}
			for p, o := range maps.Clone(keys) {
				if rest, ok := strings.CutPrefix(p, like[1]+"."); ok {
					keys[below+"."+rest] = o
				}
			}
		}
	}
	return all
}

// keysOf are the keys that encoding/json makes of a type, and the kinds of the
// values that have no keys of their own.
func keysOf(of reflect.Type) (keys keySet, kinds map[string]string) {
	keys, kinds = keySet{}, map[string]string{}
	addKeys(keys, kinds, of, "")
	return keys, kinds
}

func addKeys(keys keySet, kinds map[string]string, of reflect.Type, path string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		kinds[path] = "string"
		return
	case of.Implements(reflect.TypeFor[json.Marshaler]()):
		kinds[path] = of.String()
		return
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		addKeys(keys, kinds, of.Elem(), path+"[]")
	case reflect.Map:
		keys[dotted(path, "*")] = true
		addKeys(keys, kinds, of.Elem(), dotted(path, "*"))
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(of) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if len(f.Index) != 1 || name == "-" || name == "" && !f.Anonymous || !f.IsExported() && !f.Anonymous {
				continue
			}
			if f.Anonymous && name == "" {
				inner := keySet{}
				addKeys(inner, kinds, f.Type, path)
				for k, v := range inner {
					if _, outer := keys[k]; !outer {
						keys[k] = v || f.Type.Kind() == reflect.Pointer
					}
				}
				continue
			}
			p := dotted(path, name)
			keys[p] = strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
			addKeys(keys, kinds, f.Type, p)
		}
	case reflect.String:
		kinds[path] = "string"
	case reflect.Bool:
		kinds[path] = "boolean"
	default:
		kinds[path] = "number"
	}
}

func dotted(path, name string) string {
	if path == "" || path == "[]" {
		return name
	}
	return path + "." + name
}

// holds checks a printed value against the keys.
func (keys keySet) holds(t *testing.T, of string, v any, path string) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			inner := path + "[]"
			if path == "" {
				inner = ""
			}
			keys.holds(t, of, e, inner)
		}
	case map[string]any:
		for name, e := range v {
			p := dotted(path, name)
			if _, ok := keys[p]; !ok {
				p = dotted(path, "*")
			}
			if _, ok := keys[p]; !ok {
				t.Errorf("%s prints %q, which docs/json.md does not have", of, dotted(path, name))
				continue
			}
			keys.holds(t, of, e, p)
		}
		for p, optional := range keys {
			parent, name := "", p
			if i := strings.LastIndex(p, "."); i >= 0 {
				parent, name = p[:i], p[i+1:]
			}
			if _, printed := v[name]; parent == path && !optional && name != "*" && !printed {
				t.Errorf("%s does not print %q, which docs/json.md has as always there", of, p)
			}
		}
	}
}

// holdsText checks what a command printed: one value, or one on each line.
func (keys keySet) holdsText(t *testing.T, of, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	n := 0
	for ; d.More(); n++ {
		var v any
		require.NoError(t, d.Decode(&v), "%s: %s", of, text)
		keys.holds(t, of, v, "")
	}
	require.NotZero(t, n, "%s printed nothing", of)
}

// jsonTypes are the types that commands encode, by the page's sections.
var jsonTypes = map[string]reflect.Type{
	"demo":               reflect.TypeFor[demo.Report](),
	"devices":            reflect.TypeFor[deviceLine](),
	"abi":                reflect.TypeFor[jsonEntry](),
	"dump":               reflect.TypeFor[dump.Line](),
	"dump --summary":     reflect.TypeFor[dump.Summary](),
	"dump --qmux":        reflect.TypeFor[qmux.Line](),
	"explain":            reflect.TypeFor[explain.Answer](),
	"sample quic client": reflect.TypeFor[echo.SampleReport](),
	"perf":               reflect.TypeFor[perf.Report](),
	"echo client":        reflect.TypeFor[echo.Report](),
	"proxy":              reflect.TypeFor[peer.Line](),
	"bridge":             reflect.TypeFor[bridge.Report](),

	"sample counter client": reflect.TypeFor[sample.CounterReport](),

	"version": reflect.TypeFor[versionInfo](),
	"doctor":  reflect.TypeFor[doctor.Report](),
	"stats":   reflect.TypeFor[stats.Device](),
}

// jsonKernelLines are calls whose JSON is made of what the kernel answers.
var jsonKernelLines = []struct{ section, line string }{
	{"dev show", "-j dev"},
	{"dev show", "-j -d dev show rxe0"},
	{"link show", "-j -d link"},
	{"link gid", "-j link gid"},
	{"link up", "-j -d link up --dry-run"},
	{"link up", "-j -d link up"},
	{"resource show", "-j res"},
	{"resource show KIND", "-j res show qp"},
	{"resource show KIND", "-j -dd res show cq"},
	{"resource show KIND", "-j res show mr"},
	{"resource show KIND", "-j res show pd"},
	{"resource show KIND", "-j res show cm_id"},
	{"resource show KIND", "-j res show ctx"},
	{"statistic show", "-j stat"},
	{"system show", "-j sys"},
}

// TestJSONTypes: the page has every key of what commands encode, and no other,
// and says of the same ones that they may be absent.
func TestJSONTypes(t *testing.T) {
	documented := documentedJSON(t)
	for name, of := range jsonTypes {
		require.Contains(t, documented, name)
		keys, _ := keysOf(of)
		require.Equal(t, keys, documented[name], name)
	}
}

// TestJSONPrinted: the commands' output has the keys of the page.
func TestJSONPrinted(t *testing.T) {
	documented := documentedJSON(t)
	const recordings = repository + "/tests/testdata/"
	loss := recordings + "soft-rxe-6.1-ipv6-loss.pcap"
	for _, c := range []struct{ section, args string }{
		{"demo", "demo -j --loss 1% --seed 7 README.md"},
		{"devices", "devices -j"},
		{"abi", "abi -j"},
		{"dump", "dump -j --explain " + loss},
		{"dump", "dump -j --explain " + recordings + "rxe-6.1-cm.pcap"},
		{"dump", "dump -j --explain " + recordings + "rxe-6.1-rc-errors.pcap"},
		{"dump", "dump -j " + recordings + "rxe-7.2-atomic-write.pcap"},
		{"dump --summary", "dump -j --summary " + loss},
		{"dump --summary", "dump -j --summary " + recordings + "rxe-6.1-rc-errors.pcap"},
		{"dump --qmux", "dump -j --qmux " + repository + "/tools/rdmashim/dump/qmux/testdata/rdma.pcapng"},
		{"explain", "explain -j 12"},
		{"perf", "perf write bw -s 64 -n 10 -j"},
		{"perf", "perf send lat -s 64 -n 10 -j"},
		{"sample counter client", "sample counter client -n 50 --loss 1% -j"},
		{"version", "version -j"},
		{"doctor", "doctor -j soft"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			cmd := tool(t, strings.Fields(c.args)...)
			cmd.Dir = repository
			for i, a := range cmd.Args { // recordings are named from here
				if strings.HasPrefix(a, "..") {
					path := must.Get(filepath.Abs(a))(t)
					cmd.Args[i] = path
				}
			}
			o := finish(t, cmd)
			// The finding of a check is in the exit status, too.
			judged := c.section == "doctor" && o.Code == 1
			require.True(t, o.Code == 0 || judged, o.Stderr)
			documented[c.section].holdsText(t, c.args, o.Stdout)
		})
	}
}

// TestJSONCounters: stats and top, of a device of this process.
func TestJSONCounters(t *testing.T) {
	documented := documentedJSON(t)
	top := documented["top"]
	a := must.Get(uapi.Open("soft?port=0", uapi.OpenConfig{}))(t)
	defer a.Close()
	q := must.Get(a.CreateQP(4, 4))(t)
	self := must.Get(a.LocalEndpoint(q))(t)
	require.NoError(t, a.ConnectQP(q, self))
	documented["stats"].holdsText(t, "stats", runReader(t, "stats", "-j").Stdout)
	top.holdsText(t, "top", runReader(t, "top", "-j", "-n", "2", "-i", "50ms").Stdout)
	// top has what stats has, and rates.
	for path, optional := range documented["stats"] {
		require.Contains(t, top, "devices[]."+path)
		require.Equal(t, optional, top["devices[]."+path], path)
	}
}

// TestJSONOfKernel: the commands in iproute2's words, on a kernel that is not
// real and on the recorded answers of one that is.
func TestJSONOfKernel(t *testing.T) {
	documented := documentedJSON(t)
	for _, c := range jsonKernelLines {
		stdout, stderr, err := runRDMA(t, netlinktest.Busy(), c.line)
		require.NoError(t, err, "%s: %s", c.line, stderr)
		require.Contains(t, documented, c.section)
		documented[c.section].holdsText(t, c.line, stdout)
	}
	recorded := must.Get(netlinktest.Recorded())(t)
	for _, c := range recorded.Calls {
		words := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(c.Args, "-dd "), "-d "))
		section := map[string]string{"dev": "dev show", "link": "link show", "res": "resource show", "resource": "resource show",
			"stat": "statistic show", "statistic": "statistic show", "sys": "system show", "system": "system show"}[words[0]]
		if len(words) > 2 && section == "resource show" {
			section = "resource show KIND"
		}
		require.Contains(t, documented, section, c.Args)
		if c.Output != "[]\n" && strings.HasPrefix(c.Output, "[") {
			documented[section].holdsText(t, c.Args, c.Output)
		}
	}
	documented["monitor"].holdsText(t, "monitor", runMonitor(t))
}

// TestJSONIsDocumented: every command with --json is on the page.
func TestJSONIsDocumented(t *testing.T) {
	documented := documentedJSON(t)
	for _, c := range everyCommand() {
		f := c.Flags().Lookup("json")
		if f == nil {
			f = c.InheritedFlags().Lookup("json")
		}
		name := strings.TrimPrefix(c.CommandPath(), "rdmashim ")
		if f == nil || !c.Runnable() {
			continue
		}
		found := false
		for section := range documented {
			found = found || section == name || strings.HasPrefix(section, name+" ") || strings.HasPrefix(name, section+" ")
		}
		if !found && !slices.Contains([]string{"link add", "link delete", "system set", "dev set", "rdmashim"}, name) { // which print no JSON
			t.Errorf("docs/json.md says nothing of '%s --json'", name)
		}
	}
}
