//go:build invariants

package cache

// invariants switches on guard pages, a checksum behind each entry and the checks of check.go.
const invariants = true
