"""Customers of the shop of samples/webservice.py: they log in once, look around, and order."""

from __future__ import annotations

from osbench.plugin import scenario


class Customer(scenario.Scenario):
    """A virtual user with a separate account."""

    def on_start(self) -> None:
        """Log in; the session keeps the cookie."""
        name = self.user.data["name"]
        self.http.post("/login", json={"name": name, "password": self.user.data["password"]})

    @scenario.configure(name="Customer.visit")
    def visit(self) -> None:
        """Look at the newest item, and order it after a while."""
        (item, *_) = self.http.get("/items", expect=200).json()
        self.http.get(f"/items/{item['id']}", check={"$.id": item["id"]})
        self.think(0.01, 0.05)
        self.http.post("/orders", json={"item": item["id"]}, expect=201, verify={"$.by": "ann"})
