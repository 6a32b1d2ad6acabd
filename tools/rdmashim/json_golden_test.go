package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestJSONKinds: a value that was a number is no string tomorrow.
// testdata/json.txt has the kind of each key's value; a line that goes, or
// changes, breaks a user's program.
func TestJSONKinds(t *testing.T) {
	kinds := map[string]string{}
	for section, of := range jsonTypes {
		_, own := keysOf(of)
		for path, kind := range own {
			kinds[section+":."+path] = kind
		}
	}
	for _, c := range jsonKernelLines {
		stdout, stderr, err := runRDMA(t, netlinktest.Busy(), c.line)
		require.NoError(t, err, "%s: %s", c.line, stderr)
		for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
			var v any
			require.NoError(t, d.Decode(&v))
			kindsIn(kinds, v, c.line+":")
		}
	}
	var got strings.Builder
	for _, path := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&got, "%s %s\n", path, kinds[path])
	}
	clitest.Golden(t, "testdata/json.txt", got.String())
}

// kindsIn notes the kinds of the values in one that was printed.
func kindsIn(kinds map[string]string, v any, path string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			kindsIn(kinds, e, path+"[]")
		}
	case map[string]any:
		for name, e := range v {
			kindsIn(kinds, e, path+"."+name)
		}
	case string:
		kinds[path] = "string"
	case bool:
		kinds[path] = "boolean"
	case float64:
		kinds[path] = "number"
	default:
		kinds[path] = "null"
	}
}
