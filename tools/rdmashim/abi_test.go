package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestABI holds the output to the one that was read and kept.
func TestABI(t *testing.T) {
	for name, args := range map[string][]string{
		"abi.txt":      {"abi"},
		"abi-one.txt":  {"abi", "qp_create"},
		"abi-both.txt": {"abi", "get_context"},
		"abi-one.json": {"abi", "-j", "RESIZE_CQ"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runTool(t, args...).Well(t)
			clitest.Golden(t, filepath.Join("testdata", name), o.Stdout)
		})
	}
}

func TestABIJSON(t *testing.T) {
	list := clitest.Decode[[]map[string]any](t, runTool(t, "abi", "--json").Well(t))
	require.Len(t, list, len(abi.Schema()))
	for _, e := range list {
		require.Equal(t, e["support"] == "unsupported", e["errno"] != nil && e["reason"] != nil, e["name"])
		require.Equal(t, e["form"] == "ioctl", e["command"] == nil && e["method"] != nil && e["object"] != nil, e["name"])
	}
}

func TestABIUnknownName(t *testing.T) {
	o := runTool(t, "abi", "FLY")
	require.Equal(t, 1, o.Code)
	require.Empty(t, o.Stdout)
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"))
	require.Contains(t, o.Stderr, `"FLY"`)
	require.Equal(t, 2, runTool(t, "abi", "a", "b").Code)
}
