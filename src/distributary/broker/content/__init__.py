"""Content: which bytes a broker's host has, who refers to them, and which it is to get."""
