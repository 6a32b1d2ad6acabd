package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var rewriteABI = flag.Bool("rewrite-abi", false, "write what 'rdmashim abi' prints to testdata")

// TestABI holds the output to the one that was read and kept.
func TestABI(t *testing.T) {
	for name, args := range map[string][]string{
		"abi.txt":      {"abi"},
		"abi-one.txt":  {"abi", "qp_create"},
		"abi-both.txt": {"abi", "get_context"},
		"abi-one.json": {"abi", "-j", "RESIZE_CQ"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runTool(t, args...)
			require.Zero(t, o.Code, o.Stderr)
			file := filepath.Join("testdata", name)
			if *rewriteABI {
				require.NoError(t, os.WriteFile(file, []byte(o.Stdout), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), o.Stdout)
		})
	}
}

func TestABIJSON(t *testing.T) {
	o := runTool(t, "abi", "--json")
	require.Zero(t, o.Code, o.Stderr)
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &list))
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
