module bonsai

go 1.26
