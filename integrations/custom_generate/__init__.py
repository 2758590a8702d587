"""The files that transformers expects of a repository of custom generation."""
