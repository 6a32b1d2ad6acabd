package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
)

// composeFile has the fields of the Compose specification that the page uses.
type composeFile struct {
	Services map[string]struct {
		Image, Pid, Command string
		Environment         map[string]string
		Volumes             []string
	}
	Volumes map[string]struct {
		DriverOpts map[string]string `yaml:"driver_opts"`
	}
}

// podFile has the fields of Kubernetes's Pod (core/v1) that the page uses.
type podFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		NodeName              string `yaml:"nodeName"`
		RestartPolicy         string `yaml:"restartPolicy"`
		ShareProcessNamespace bool   `yaml:"shareProcessNamespace"`
		Volumes               []struct {
			Name     string
			EmptyDir *struct{}                    `yaml:"emptyDir"`
			HostPath *struct{ Path, Type string } `yaml:"hostPath"`
		}
		Containers []struct {
			Name, Image  string
			Env          []struct{ Name, Value string }
			Command      []string
			VolumeMounts []struct {
				Name      string
				MountPath string `yaml:"mountPath"`
			} `yaml:"volumeMounts"`
		}
	}
}

// containerFile returns a file of docs/containers.md. A field that v has not is
// an error.
func containerFile(t *testing.T, name string, v any) {
	t.Helper()
	for _, b := range docBlocks(t)["containers.md"] {
		if b.language == "yaml" && b.argument == name {
			d := yaml.NewDecoder(strings.NewReader(b.text))
			d.KnownFields(true)
			require.NoError(t, d.Decode(v), b.String())
			return
		}
	}
	t.Fatal("docs/containers.md has no " + name)
}

// requireContainer checks what a container runs, and that a variable names
// something that it has mounted.
func requireContainer(t *testing.T, command string, environment map[string]string, mounts []string) {
	t.Helper()
	args := callIn(command)
	require.NotEmpty(t, args, command)
	found, rest, err := newRoot().Find(args)
	require.NoError(t, err, command)
	require.NoError(t, found.ParseFlags(rest), command)
	require.NoError(t, found.ValidateArgs(found.Flags().Args()), command)
	for name, value := range environment {
		require.Contains(t, []string{"RDMASHIM_KERNEL", "RDMASHIM_SHM_DIR"}, name)
		require.True(t, slices.ContainsFunc(mounts, func(at string) bool { return strings.HasPrefix(value+"/", at+"/") }), value)
	}
}

// TestContainerFiles: the files of docs/containers.md have fields that their
// specifications have, and name what is there.
func TestContainerFiles(t *testing.T) {
	for _, name := range []string{"compose.yaml", "nodes.yaml"} {
		var f composeFile
		containerFile(t, name, &f)
		require.NotEmpty(t, f.Services)
		for _, s := range f.Services {
			var mounts []string
			for _, v := range s.Volumes {
				volume, at, _ := strings.Cut(v, ":")
				require.Contains(t, f.Volumes, volume)
				mounts = append(mounts, at)
			}
			requireContainer(t, s.Command, s.Environment, mounts)
			if other, is := strings.CutPrefix(s.Pid, "service:"); is {
				require.Contains(t, f.Services, other)
			}
		}
	}
	for _, name := range []string{"pod.yaml", "pods.yaml"} {
		var f podFile
		containerFile(t, name, &f)
		require.Equal(t, "v1 Pod", f.APIVersion+" "+f.Kind)
		volumes := map[string]bool{}
		for _, v := range f.Spec.Volumes {
			require.True(t, (v.EmptyDir == nil) != (v.HostPath == nil), name)
			volumes[v.Name] = true
		}
		require.NotEmpty(t, f.Spec.Containers)
		for _, c := range f.Spec.Containers {
			var mounts []string
			for _, m := range c.VolumeMounts {
				require.True(t, volumes[m.Name], m.Name)
				mounts = append(mounts, m.MountPath)
			}
			environment := map[string]string{}
			for _, e := range c.Env {
				environment[e.Name] = e.Value
			}
			requireContainer(t, strings.Join(c.Command, " "), environment, mounts)
		}
	}
}

// TestContainerNodes: the commands of nodes.yaml, in two network namespaces
// with a directory of both, WRITE through shared memory.
func TestContainerNodes(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	var f composeFile
	containerFile(t, "nodes.yaml", &f)
	shared := must.Get(os.MkdirTemp("", "shm"))(t) // a socket's name is short
	defer os.RemoveAll(shared)
	self := must.Get(os.Executable())(t)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "rdmashim")))
	n := must.Get(netpath.New(netpath.Options{Straight: true}))(t)
	defer func() { require.NoError(t, n.Close()) }()
	var out bytes.Buffer
	start := func(name string, end *netpath.End) *exec.Cmd {
		s := f.Services[name]
		require.NotEmpty(t, s.Environment["RDMASHIM_SHM_DIR"])
		line := strings.ReplaceAll(s.Command, "bw server;", "bw "+n.A.Addr4.String()+";")
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec "+line)
		cmd.Env = append(os.Environ(), asTool+"=1", "PATH="+bin+":"+os.Getenv("PATH"), "RDMASHIM_SHM_DIR="+shared)
		if name == "client" {
			cmd.Stdout = &out
		}
		cmd.Stderr = os.Stderr
		require.NoError(t, end.Do(cmd.Start))
		return cmd
	}
	server := start("server", n.A)
	require.NoError(t, start("client", n.B).Wait())
	require.Contains(t, out.String(), "way shm")
	require.NoError(t, server.Process.Signal(os.Interrupt))
	require.NoError(t, server.Wait())
}
