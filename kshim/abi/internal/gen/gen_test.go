package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestGeneratedFilesAreFresh holds the committed files to what the generator
// makes of layout.txt and the golden files.
func TestGeneratedFilesAreFresh(t *testing.T) {
	const dir = "../.."
	want := must.Get(generate(dir))(t)
	names := must.Get(filepath.Glob(filepath.Join(dir, "*_gen*.go")))(t)
	require.Len(t, names, len(want), "a generated file too many, or one too few: run go generate ./kshim/abi")
	for name, text := range want {
		got := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		if string(got) != string(text) {
			t.Errorf("%s is stale: run go generate ./kshim/abi", name)
		}
	}
}

func small(t *testing.T, golden, notes string) (map[string][]byte, error) {
	t.Helper()
	g, err := parseGolden(golden)
	if err != nil {
		return nil, err
	}
	decls, err := parseNotes(notes)
	if err != nil {
		return nil, err
	}
	return emit(g, decls)
}

// TestRefusals holds that nothing of the golden files is left out by mistake,
// and nothing made up.
func TestRefusals(t *testing.T) {
	const one = "struct one 4\nfield one id 0 4\nvalue A_B 1\n"
	for _, c := range []struct{ golden, notes, want string }{
		{"struct one\n", "", `cannot read "struct one\n"`},
		{"field two id 0 4\n", "", "cannot read"},
		{one, "", "struct one of the golden files is not declared"},
		{one, "struct one One\nstruct two Two\n", "no struct two"},
		{one, "struct one One\n\tno\n", "one: no field no"},
		{one, "offsets one One OneSize\n\tno\n", "one: no field no"},
		{one, "skip one\nenum K uint8 K A_\n\tC\n", "K: A_C is not in the golden files and has no number"},
		{one, "skip one\nenum K uint8 K A_\n\t-C\n", "is not in the golden files"},
		{one, "skip one\nenum K uint8 K\n\tC=x\n", "invalid syntax"},
		{one, "struct one\n", `"struct one" is not a declaration`},
		{one, "union one One\n", `"union one One" is not a declaration`},
		{one, "struct one 1One\n", "layout.txt: "},
		{one, "skip one\nenum K uint8 1K\n\tC\n", "_gen.go"},
	} {
		_, err := small(t, c.golden, c.notes)
		require.ErrorContains(t, err, c.want, c.notes)
	}
}
