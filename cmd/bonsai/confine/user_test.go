package confine

import (
	"os/user"
	"runtime"
	"strings"
	"testing"
)

func TestParseUser(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("users have no numbers there")
	}
	self, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	uid, gid, err := numbers(self)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]User{
		self.Username:                {self.Username, uid, gid},
		self.Uid:                     {self.Uid, uid, gid},
		self.Username + ":65532":     {self.Username + ":65532", uid, 65532},
		"2000000001:2000000002":      {"2000000001:2000000002", 2000000001, 2000000002},
		self.Username + ":" + "0":    {self.Username + ":0", uid, 0},
		self.Uid + ":" + "000000012": {self.Uid + ":000000012", uid, 12},
	} {
		if got, err := ParseUser(text); err != nil || *got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                "there is no user",
		"no-such-user":    `"no-such-user"`,
		"2000000001":      "2000000001:GROUP",
		"-1:0":            "there is no user",
		"4294967295:0":    "there is no user", // -1 to the kernel: leave it as it is
		"0:no-such-group": `"no-such-group"`,
		"0:":              `""`,
	} {
		if got, err := ParseUser(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %s", text, got, err, want)
		}
	}
}
