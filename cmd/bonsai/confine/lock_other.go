//go:build !linux

package confine

// Lock gives nothing up: this system has nothing of the kind that is used here.
func Lock(Folders) Outcome {
	const none = "off: only on Linux"
	return Outcome{Capabilities: none, Landlock: none, Seccomp: none}
}
